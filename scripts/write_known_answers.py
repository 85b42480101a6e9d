"""Write what `dpfast doctor` must find: `python scripts/write_known_answers.py`, where noise is drawn in another way.

A new answer is right only if the tests of the mechanisms say so: they hold the laws, and the same bits on every
processor.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from dpfast.cli.doctor.checks import CHECKS  # noqa: E402

PLACE = ROOT / "dpfast" / "cli" / "doctor" / "known_answers.py"


def main() -> None:
    before = PLACE.read_text().split("KNOWN_ANSWERS")[0]
    lines = [f'    "{check.name}": "{check.answer()}",' for check in CHECKS if check.exact is None]
    PLACE.write_text(before + "KNOWN_ANSWERS: dict[str, str] = {\n" + "\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
