"""Which processor each figure of benchmarks/measured.md is of, and whether its kernels have changed since.

`benchmarks/measured.json` keeps it: for each row the digest of its kernels at its newest measurement, and for each
column the processor and the digest of its own measurement, null where that was not kept. A processor without AVX-512
measures one of the two columns. The page lists the rows whose other column is then of earlier kernels.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

__all__ = [
    "AVX2",
    "AVX512",
    "Origins",
    "digest_of_kernels",
    "lines_of_earlier_kernels",
    "lines_of_processors",
    "note",
    "processor",
    "read_origins",
    "write_origins",
]

AVX512, AVX2 = "AVX-512", "AVX2 alone"
"""The columns, by their instruction sets."""

Origins = dict[str, dict[str, Any]]
"""What is known of each row, by its name."""


def processor() -> str:
    """Return this machine's processor: who made it, its family and model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "cpu family" not in told:
        return platform.machine()
    return f"{told.get('vendor_id', '')} family {told['cpu family']}, model {told.get('model', '')}".strip()


def digest_of_kernels() -> str:
    """Return a digest of the files of kernels that this process has loaded, without the lines that are comments."""
    digest = hashlib.sha256()
    for name, module in sorted(sys.modules.items()):
        if name.startswith("dpfast.kernels.") and module.__file__:
            digest.update(f"{name}\n{_code(Path(module.__file__).read_text())}\n".encode())
    return digest.hexdigest()[:16]


def _code(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


def note(origins: Origins, name: str, measured: Mapping[str, str], kernels: str) -> None:
    """Note a row as measured with these kernels: its columns, and the processor of each."""
    row = origins.setdefault(name, {})
    row["kernels"] = kernels
    row |= {column: {"processor": of, "kernels": kernels} for column, of in measured.items()}


def read_origins(path: Path) -> Origins:
    """Return what a file keeps, nothing if there is none."""
    if not path.exists():
        return {}
    found: Origins = json.loads(path.read_text())
    return found


def write_origins(path: Path, origins: Origins, names: Collection[str]) -> None:
    """Keep what is known of these rows, a line for each."""
    lines = [f"{json.dumps(name)}: {json.dumps(origins[name])}" for name in names if name in origins]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def lines_of_processors(origins: Origins, names: Collection[str]) -> list[str]:
    """Return a line for each column: its processors, and which of these rows are not of the commonest."""
    lines = []
    for column in (AVX512, AVX2):
        of = {name: origins[name][column]["processor"] for name in names if column in origins.get(name, {})}
        common, *others = [name for name, _ in Counter(of.values()).most_common()] or [""]
        told = [f"{common}, {list(of.values()).count(common)} rows"] if of else []
        told += [f"{other}, these: {'; '.join(name for name in of if of[name] == other)}" for other in others]
        lines += [f"- {column}: {'. '.join(told)}."] * bool(told)
    return lines


def lines_of_earlier_kernels(origins: Origins, names: Collection[str]) -> list[str]:
    """Return a line for each column that has figures of earlier kernels than the row's newest: which these are."""
    lines = []
    for column in (AVX512, AVX2):
        rows = {name: origins[name] for name in names if column in origins.get(name, {})}
        before = [name for name, row in rows.items() if row[column]["kernels"] != row["kernels"]]
        others = [name for name in rows if name not in before]
        if before and len(before) > 2 * len(others):
            lines.append(f"- {column}: all rows{' but these: ' * bool(others)}{'; '.join(others)}.")
        elif before:
            lines.append(f"- {column}: {'; '.join(before)}.")
    return lines
