"""The rules of the house: who may import whom, what a public name owes its reader, how long a file may be."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import subprocess
import sys
import types
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import dpfast

PACKAGE = Path(dpfast.__file__).parent
LONGEST_FILE = 450

#: Imports go down only: a room may import from lower floors, and from itself.
FLOORS = [
    ("errors", "kernels"),
    ("arguments", "exact", "announcement", "showing"),
    ("threads", "randomness"),
    ("progress", "testing"),
    ("turns",),
    # The data wing: columns, exact figures of groups, cells and what is asked of them. No mechanism is in it.
    ("columns", "charts"),
    ("accounting", "rows"),
    ("queries", "pages"),
    ("aggregation",),
    ("domain",),
    ("workloads",),
    ("ledger", "mechanisms"),
    ("strategies", "weights"),
    ("graphical",),
    ("synthesis",),
    ("releases", "answering"),
    # The rest of the book, one room each.
    ("stability", "streaming", "sketches", "local", "learning", "games", "attacks"),
    ("theory",),
    ("auditing",),
    ("integrations",),
    ("__init__",),
    ("bench",),
    ("cli",),
    ("__main__",),
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
#: And what reads and writes nothing.
KERNELS_MAY_IMPORT = {"numba", "llvmlite", "numpy"} | (
    sys.stdlib_module_names - {"os", "io", "secrets", "random", "pathlib", "socket"}
)


@cache
def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


class Source(NamedTuple):
    """What the checks below need of a file, so that each is parsed once."""

    documented: bool
    imports: list[ast.Import | ast.ImportFrom]
    #: Those that are not for types alone.
    needed: list[ast.Import | ast.ImportFrom]
    #: What errors show of ours as if a user had written it.
    quoted: list[str]


@cache
def read(path: Path) -> Source:
    tree = ast.parse(path.read_text())
    imports, for_types, quoted = [], set(), []
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imports.append(node)
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for_types |= {id(inner) for statement in node.body for inner in ast.walk(statement)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ParameterError":
            given = node.args[1] if len(node.args) > 1 else None
            text = isinstance(given, ast.Constant) and isinstance(given.value, str)
            if text or isinstance(given, ast.JoinedStr):
                quoted.append(f"line {node.lineno}: write Words({ast.unparse(given)})")
    documented = not tree.body or ast.get_docstring(tree) is not None
    return Source(documented, imports, [node for node in imports if id(node) not in for_types], quoted)


@cache
def imported(path: Path) -> set[str]:
    """Return the full names of the modules that a file imports, anywhere in it."""
    package = ["dpfast", *path.relative_to(PACKAGE).parent.parts]
    names = set()
    for node in read(path).imports:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module] if node.module else base)
            # ``from dpfast import kernels`` is an import of dpfast.kernels; of a function, of the package.
            names |= {f"{module}.{alias.name}" for alias in node.names} if module == "dpfast" else {module}
    return names


@cache
def rooms_of(package: Path) -> set[str]:
    return {path.relative_to(package).parts[0].removesuffix(".py") for path in package.rglob("*.py")}


def rooms_imported(path: Path) -> set[str]:
    rooms = {
        "__init__" if name == "dpfast" else name.split(".")[1]
        for name in imported(path)
        if name.split(".")[0] == "dpfast"
    }
    return {room if room in rooms_of(PACKAGE) else "__init__" for room in rooms} - {room_of(path)}


def of_files(wrong: Callable[[Path], object]) -> dict[str, object]:
    """Return what is wrong with each file, where something is: a test a file would be thousands, most of them waits."""
    return {str(path.relative_to(PACKAGE)): found for path in sources() if (found := wrong(path))}


def test_every_room_has_a_floor():
    assert {room_of(path) for path in sources()} <= FLOOR_OF.keys(), "give a new room a floor in tests/test_house.py"


def upward(path: Path) -> list[str]:
    return [other for other in rooms_imported(path) if FLOOR_OF[other] >= FLOOR_OF[room_of(path)]]


def test_imports_go_down_only():
    assert of_files(upward) == {}


def modules_imported(path: Path) -> set[Path]:
    """Return the files of the package that a file imports, anywhere in it but for types alone."""
    found, files = set(), set(sources())
    for node in read(path).needed:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpfast":
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                for place in (name, node.module or ""):
                    module = PACKAGE.joinpath(*place.split(".")[1:]).with_suffix(".py")
                    if module in files:
                        found.add(module)
                        break
    return found - {path}


def test_modules_do_not_import_each_other_in_circles():
    """What a module needs can be read without it, also where it imports in a function."""
    left = {path: modules_imported(path) for path in sources()}
    while ready := {path for path, needed in left.items() if not needed & left.keys()}:
        left = {path: needed for path, needed in left.items() if path not in ready}
    # What only leads to a circle is taken away from above.
    while top := left.keys() - set().union(*left.values()):
        left = {path: needed for path, needed in left.items() if path not in top}
    assert sorted(str(path.relative_to(PACKAGE)) for path in left) == []


def kernel_sources() -> list[Path]:
    return [path for path in sources() if room_of(path) == "kernels"]


def foreign(path: Path) -> list[str]:
    """Return what a kernel imports and must not: kernels neither read nor write."""
    outside = [name for name in imported(path) if not name.startswith("dpfast.kernels")]
    return [name for name in outside if name.split(".")[0] not in KERNELS_MAY_IMPORT]


def test_kernels_import_numba_llvmlite_and_numpy_alone():
    assert of_files(lambda path: foreign(path) if room_of(path) == "kernels" else []) == {}


def test_planning_does_not_know_where_a_ledger_is_kept():
    """What draws up, draws and synthesizes pays through `Payment`; which store a ledger has is the ledger's own."""
    stores = {"durable", "memory", "sqlite", "sqlite_files", "postgresql", "postgresql_server", "rollback_journal"}
    for path in sources():
        if room_of(path) not in {"ledger", "cli"}:
            within = {name.removeprefix("dpfast.ledger.") for name in imported(path)}
            assert not within & stores, path


def test_nothing_outside_kernels_imports_numba():
    for path in sources():
        if room_of(path) != "kernels":
            assert not {name.split(".")[0] for name in imported(path)} & {"numba", "llvmlite"}, path


def test_only_randomness_touches_entropy():
    """Soundness rule 1: keys come from one place, and in the compiled plugin from the system's own function."""
    compiled = PACKAGE / "kernels" / "plugin" / "memory.py"
    for path in sources():
        if room_of(path) != "randomness" and path != compiled:
            text = path.read_text()
            for call in (
                r"\burandom\(",
                r"np\.random\.",
                r"\bgetrandom\(|\"getrandom\"",
                r"^import random",
                r"\bsecrets\.(?!SystemRandom)",
            ):
                for line in text.splitlines():
                    # An identifier of a ledger or a file's name is no noise.
                    if re.search(call, line) and not re.search(r"secrets\.token|uuid", line):
                        pytest.fail(f"{path.relative_to(PACKAGE)}: {line.strip()}")


def test_kernels_never_call_numpys_generator():
    for path in kernel_sources():
        assert "random." not in re.sub(r'""".*?"""|#.*', "", path.read_text(), flags=re.DOTALL), path.name


def test_files_are_short():
    assert of_files(lambda path: path.read_text().count("\n") > LONGEST_FILE) == {}


def test_modules_begin_with_a_docstring():
    assert of_files(lambda path: not read(path).documented) == {}


def thing(name: str) -> Any:
    return attrgetter(name)(dpfast)


def public_names() -> list[str]:
    """Return the names of the package and of its public modules; of those only what a user calls."""
    names = [*dpfast.__all__, *(f"accounting.{name}" for name in dpfast.accounting.__all__)]
    for module in ("strategies", "workloads"):
        names += [f"{module}.{name}" for name in thing(module).__all__ if name.islower()]
    return [name for name in names if not isinstance(thing(name), types.ModuleType)]


#: What only describes a question or a failure and lets nothing out; nor do workloads and strategies.
WITHOUT_GUARANTEE = {
    *("bins", "count", "units", "sum", "mean", "proportion", "variance", "std", "covariance", "histogram", "cdf"),
    *("count_distinct", "top_k"),
    *("quantile", "minimum", "maximum", "mode"),
}


def no_mechanism(name: str) -> bool:
    described = name.split(".")[0] in {"strategies", "workloads"}
    return described or (inspect.isclass(thing(name)) and issubclass(thing(name), BaseException))


def test_public_names_have_a_docstring_with_an_example():
    texts = {name: inspect.getdoc(thing(name)) or "" for name in public_names()}
    assert [name for name, text in texts.items() if not text.split("\n")[0].endswith((".", ":"))] == []
    assert [name for name, text in texts.items() if ">>>" not in text] == []


def test_public_names_say_what_they_guarantee():
    names = [name for name in public_names() if not no_mechanism(name) and name not in WITHOUT_GUARANTEE]
    texts = {name: inspect.getdoc(thing(name)) or "" for name in names}
    assert [name for name, text in texts.items() if not re.search(r"^Guarantee$", text, re.MULTILINE)] == []


def test_examples_of_public_names_are_run_with_the_modules():
    """``--doctest-modules`` runs what it finds in a module of the package; scripts/test.sh asks for it."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = {
        test.name
        for module in {thing(name).__module__ for name in public_names()}
        for test in finder.find(importlib.import_module(module))
        if test.examples
    }
    places = {name: f"{thing(name).__module__}.{thing(name).__qualname__}" for name in public_names()}
    lost = [name for name, place in places.items() if place not in found]
    assert lost == []
    assert "--doctest-modules dpfast" in (PACKAGE.parent / "scripts" / "test.sh").read_text()


def test_errors_show_words_of_ours_without_quotes():
    """What a user wrote is quoted; what we say of it, a literal here, is `Words`."""
    assert of_files(lambda path: read(path).quoted) == {}


def test_no_test_fails_because_the_machine_is_busy():
    """What waits for another process waits ten times as long as the slowest takes on a quiet machine, or for ever.

    Nothing is held to be fast: that is said by the rows of benchmarks/.
    """
    short = []
    for path in Path(__file__).parent.rglob("*.py"):
        text = path.read_text()
        for given in re.findall(r"\btimeout=(\d+(?:\.\d+)?)\b", text):
            if float(given) < 1200:
                short.append(f"{path.name}: timeout={given}")
        for timed in re.findall(r"\b(?:perf_counter|monotonic|time)\(\) - \w+ <.*", text):
            short.append(f"{path.name}: {timed}")
    assert short == []


STAMP = re.compile(r"\n# Stamp of all kernel sources \(scripts/stamp_kernels\.py\): [0-9a-f]{16}\n\Z")


def test_every_kernel_source_is_stamped():
    for path in kernel_sources():
        assert STAMP.search(path.read_text()), path


@pytest.fixture
def house_with_a_mutant(tmp_path, monkeypatch):
    """A package whose one kernel, in a subfolder, breaks every rule of kernels, and a mechanism of three floors."""
    for folder in ("kernels", "kernels/noise", "mechanisms", "mechanisms/noise"):
        (tmp_path / folder).mkdir()
    (tmp_path / "kernels" / "noise" / "new.py").write_text(
        "import os\nimport polars\nfrom ...mechanisms import laplace\n\nx = random.random()\n"
    )
    (tmp_path / "mechanisms" / "noise" / "new.py").write_text(
        "def f():\n    import numba.core\n    from dpfast.releases import plan\n    from ...kernels import laplace\n"
    )
    for room in ("kernels", "mechanisms", "releases"):
        (tmp_path / room).mkdir(exist_ok=True)
        (tmp_path / room / "__init__.py").write_text("")
    monkeypatch.setattr(sys.modules[__name__], "PACKAGE", tmp_path)
    sources.cache_clear()
    yield tmp_path
    sources.cache_clear()


def test_the_checks_above_see_what_is_forbidden_in_a_subfolder(house_with_a_mutant):
    kernel, mechanism = (house_with_a_mutant / room / "noise" / "new.py" for room in ("kernels", "mechanisms"))
    assert kernel in kernel_sources()
    assert imported(mechanism) == {"numba.core", "dpfast.releases", "dpfast.kernels"}
    assert imported(kernel) == {"os", "polars", "dpfast.mechanisms"}
    assert (upward(kernel), upward(mechanism)) == (["mechanisms"], ["releases"])
    assert set(foreign(kernel)) == {"os", "polars", "dpfast.mechanisms"}
    for whole in (
        test_imports_go_down_only,
        test_kernels_import_numba_llvmlite_and_numpy_alone,
        test_modules_begin_with_a_docstring,
        test_nothing_outside_kernels_imports_numba,
        test_kernels_never_call_numpys_generator,
        test_every_kernel_source_is_stamped,
    ):
        with pytest.raises(AssertionError):
            whole()


@pytest.mark.parametrize("line", ["import os", "import polars", "from ...mechanisms import laplace", "import secrets"])
def test_one_forbidden_import_of_a_kernel_is_enough(house_with_a_mutant, line):
    kernel = house_with_a_mutant / "kernels" / "noise" / "one.py"
    kernel.write_text(f'"""A kernel."""\n\nimport math\n\nimport numba\n\nfrom ...kernels import noise\n{line}\n')
    assert len(foreign(kernel)) == 1
    imported.cache_clear()
    read.cache_clear()
    kernel.write_text(kernel.read_text().replace(f"{line}\n", ""))
    assert foreign(kernel) == []


def test_kernels_in_subfolders_are_stamped_and_change_every_stamp(tmp_path):
    script = PACKAGE.parent / "scripts" / "stamp_kernels.py"
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / script.name).write_text(script.read_text())
    outer, inner = tmp_path / "dpfast/kernels/outer.py", tmp_path / "dpfast/kernels/noise/inner.py"
    inner.parent.mkdir(parents=True)
    for path in (outer, inner):
        path.write_text("x = 1\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, tmp_path / "scripts" / script.name, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run("--check").stdout.split(":")[0] == "noise/inner.py"
    run()
    assert run("--check").returncode == 0
    before = outer.read_text()
    inner.write_text(inner.read_text().replace("x = 1", "x = 2"))
    assert run("--check").returncode == 1
    run()
    assert STAMP.search(inner.read_text())
    assert outer.read_text() != before


def test_every_rule_of_soundness_is_held_by_a_test_that_names_it():
    texts = [path.read_text() for path in Path(__file__).parent.rglob("*.py") if path != Path(__file__)]

    def is_named(rule: int) -> bool:
        named = re.compile(rf"[Rr]ules? (\d+(, | and | to ))*{rule}\b")
        return any(map(named.search, texts))

    assert [rule for rule in range(1, 27) if not is_named(rule)] == []
