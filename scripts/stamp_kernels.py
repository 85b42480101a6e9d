"""Write the digest of all kernel sources into each kernel file.

Numba's cache on disk notices a change in the file of a compiled function, not in the files of the functions
that it calls. The stamp, the last line of every kernel file, changes them all together.

    python scripts/stamp_kernels.py            rewrite the stamps
    python scripts/stamp_kernels.py --check    exit with 1 if one is out of date
"""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path

KERNELS = Path(__file__).resolve().parent.parent / "dpfast" / "kernels"
STAMP = re.compile(r"\n*# Stamp of all kernel sources \(scripts/stamp_kernels\.py\): [0-9a-f]*\n\Z")


def outdated() -> dict[Path, str]:
    """Return the new text of every kernel file whose stamp does not fit its sources."""
    bodies = {path: STAMP.sub("\n", path.read_text()) for path in sorted(KERNELS.rglob("*.py"))}
    digest = hashlib.sha256("\0".join(bodies.values()).encode()).hexdigest()[:16]
    line = f"\n\n# Stamp of all kernel sources (scripts/stamp_kernels.py): {digest}\n"
    texts = {path: body.rstrip("\n") + "\n" + line for path, body in bodies.items()}
    return {path: text for path, text in texts.items() if path.read_text() != text}


def main() -> int:
    stale = outdated()
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.relative_to(KERNELS)}: stamp out of date; run python scripts/stamp_kernels.py")
        return 1 if stale else 0
    for path, text in stale.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
