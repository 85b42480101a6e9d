"""What measurements depend on beside the code: the processor, its instructions, cores, memory, and versions."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dpfast.cores import core_count

__all__ = ["Machine", "commit_of", "this_machine", "versions_of"]

_PACKAGES = ("numpy", "numba", "llvmlite", "polars", "pyarrow", "cryptography")


@dataclass(frozen=True)
class Machine:
    """A machine, as far as speed depends on it.

    Attributes
    ----------
    processor, instructions
        Its name, and the widest vectors that kernels are compiled for.
    cores
        Of those, how many this process may use.
    memory
        In units of 2**30 bytes.
    system
        The operating system, and the kind of processor.

    """

    processor: str
    instructions: str
    cores: int
    memory: float
    system: str

    def __str__(self) -> str:
        """Return it in one line: two lines differ where the machines do."""
        return f"{self.processor}, {self.instructions}, {self.cores} cores, {self.memory:.0f} GB, {self.system}"


def this_machine() -> Machine:
    """Return the machine on which this runs.

    Examples
    --------
    >>> this_machine().cores >= 1
    True

    """
    system = f"{platform.system()} {platform.machine()}"
    return Machine(_processor(), _instructions(), core_count(), _memory() / 2**30, system)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    named = (line.partition(":")[2] for line in lines if line.startswith("model name"))
    return " ".join(next(named, platform.processor() or "unknown processor").split())


def _instructions() -> str:
    from dpfast.kernels.compilation import processor_features

    _, has = processor_features()
    names = {"avx512f": "AVX-512", "avx2": "AVX2", "neon": "NEON"}
    return next((name for feature, name in names.items() if has.get(feature)), "vectors of 128 bits")


def _memory() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError, AttributeError):
        return float("nan")


def versions_of(others: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, of what dpfast needs, and of these other packages that are installed.

    Examples
    --------
    >>> sorted(versions_of(["no-such-package"]))[-3:]
    ['polars', 'pyarrow', 'python']

    """
    found = {"python": platform.python_version()}
    for package in (*_PACKAGES, *others):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit_of(folder: Path) -> str | None:
    """Return the commit of a checkout, with a plus if files of it are changed; None outside of one."""
    if not (folder / ".git").exists():
        return None
    try:
        head = _git(folder, "rev-parse", "--short=12", "HEAD")
        return head + ("+" if _git(folder, "status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
