"""How the plugin's library is built and kept: once, whole, by this user alone; and what happens where it cannot be."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import polars as pl
import pytest

from dpfast.integrations.plugin import calls
from dpfast.integrations.plugin import library as building
from dpfast.integrations.polars_plugin import gaussian, laplace, randomized_response

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache folder of its own, and a process that has not looked for a library."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(building, "_made", None)
    return tmp_path / "cache" / "dpfast"


@pytest.fixture
def quick(monkeypatch, plugin):
    """The compiled object is taken from the library at hand: linking alone is what differs."""
    made = []

    def link(folder, linker):
        made.append(linker)
        copied = folder / "plugin.so"
        shutil.copy(plugin.path, copied)
        copied.chmod(0o700)
        return copied

    monkeypatch.setattr(building, "_link", link)
    return made


def test_built_once_and_kept(home, quick):
    first = building.library()
    assert first.path.parent == home
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(first.path.stat().st_mode) & 0o077 == 0
    assert [path.suffix for path in sorted(home.iterdir())] == [".lock", ".so"]
    building._made = None
    assert building.library().path == first.path
    assert len(quick) == 1


def test_the_name_changes_with_the_sources_and_the_processor(monkeypatch, tmp_path):
    import dpfast.kernels.plugin.building as compiling

    name = building._fingerprint()
    assert name == building._fingerprint()
    monkeypatch.setattr(compiling, "processor", lambda: "another")
    assert building._fingerprint() != name
    monkeypatch.undo()
    shutil.copytree(Path(building.kernels.__path__[0]), tmp_path / "kernels")
    with (tmp_path / "kernels" / "noise" / "laplace.py").open("a") as file:
        file.write("# changed\n")
    monkeypatch.setattr(building.kernels, "__path__", [str(tmp_path / "kernels")])
    assert building._fingerprint() != name


@pytest.mark.parametrize("damage", ["cut", "short", "flipped", "empty"])
def test_a_damaged_library_is_built_again(home, quick, plugin, damage):
    path = building.library().path
    code = bytearray(path.read_bytes())
    path.unlink()  # this process has the old one loaded
    if damage == "flipped":
        code[len(code) // 2] ^= 1
    path.write_bytes(code[: {"cut": len(code) - 40, "short": 5000, "flipped": len(code), "empty": 0}[damage]])
    path.chmod(0o700)
    building._made = None
    assert building.library().path == path
    assert path.stat().st_size == plugin.path.stat().st_size
    assert len(quick) == 2


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_what_is_no_file_is_not_read(home, quick, plugin, kind, tmp_path):
    """Opening a pipe would wait for a writer forever."""
    path = building.library().path
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path, 0o600)
    elif kind == "folder":
        path.mkdir(0o700)
    else:
        path.symlink_to(plugin.path)
    building._made = None
    again = building.library().path
    assert again.is_file()
    assert not again.is_symlink()
    assert (again == path) == (kind != "folder")


def test_a_library_that_is_kept_is_opened_and_none_is_built(home, quick):
    building.open_kept()
    assert building._made is None
    assert not home.exists()
    path = building.library().path
    for damaged in (False, True):
        building._made = None
        if damaged:
            path.unlink()
            path.write_bytes(b"no library")
            path.chmod(0o700)
        building.open_kept()
        assert (building._made is None) == damaged
    assert len(quick) == 1


def test_old_libraries_are_deleted(home, quick):
    home.mkdir(mode=0o700, parents=True)
    for age in range(12):
        for suffix in (".so", ".lock"):
            old = home / f"plugin-{age}{suffix}"
            old.touch()
            os.utime(old, (1e9 - age, 1e9 - age))
    path = building.library().path
    assert {kept.stem for kept in home.glob("*.so")} == {path.stem, *(f"plugin-{age}" for age in range(7))}
    assert len(list(home.glob("*.lock"))) == 8


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720])
def test_a_folder_that_others_may_write_to_is_not_used(home, quick, mode):
    """Whoever can write there could have their own code run."""
    home.mkdir(parents=True)
    home.chmod(mode)
    path = building.library().path
    assert path.parent != home
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(home.iterdir()) == []


def test_a_library_that_others_may_write_to_is_not_loaded(home, quick):
    path = building.library().path
    path.chmod(0o722)
    building._made = None
    again = building.library().path
    assert not stat.S_IMODE(again.stat().st_mode) & 0o022


def test_a_symbolic_link_is_no_folder(home, quick, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o777)
    home.parent.mkdir()
    home.symlink_to(elsewhere)
    assert building.library().path.parent != home
    assert list(elsewhere.iterdir()) == []


def test_a_folder_that_cannot_be_made_falls_back_to_a_private_one(tmp_path, monkeypatch, quick):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(building, "_made", None)
    folder = building.library().path.parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.stat().st_uid == os.geteuid()


def test_a_relative_cache_folder_is_passed_over(monkeypatch, quick, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(building, "_made", None)
    assert building.library().path.parent == tmp_path / "home" / ".cache" / "dpfast"


PROGRAM = """
import sys
import shutil
from pathlib import Path
import polars as pl
from dpfast.integrations.plugin import library as building
from dpfast.integrations.polars_plugin import laplace

object_code = Path(sys.argv[1]).read_bytes()
import dpfast.kernels.plugin.building as compiling
compiling.object_code = lambda: object_code
frame = pl.DataFrame({"n": list(range(1000))})
assert frame.select(laplace(pl.col("n"), 0.001))["n"].to_list() == list(range(1000))
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory, request):
    """An object file: what takes half a minute, unless this process made it, or pytest's cache has it."""
    kept = getattr(request.config, "cache", None)
    folder = tmp_path_factory.mktemp("compiled") if kept is None else kept.mkdir("plugin")
    path = folder / f"{building._fingerprint()}.o"
    if not path.exists():
        for old in folder.glob("*.o"):
            old.unlink()
        written = tmp_path_factory.mktemp("written") / "plugin.o"
        written.write_bytes(building._compiled())
        shutil.move(written, path)
    return path


def test_four_processes_build_at_once(tmp_path, compiled):
    """Every one has a library that draws, and one file is left."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM, str(compiled)]
    running = [subprocess.Popen(command, env=environment) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert [path.suffix for path in sorted((tmp_path / "dpfast").iterdir())] == [".lock", ".so"]


@pytest.mark.parametrize("linker", ["cc", "ld"])
def test_either_linker_will_do(tmp_path, compiled, linker):
    if shutil.which(linker) is None:
        pytest.skip(f"there is no {linker}")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / linker).symlink_to(shutil.which(linker))
    path = f"{folder}:{'/usr/bin' if linker == 'cc' else ''}"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PATH": path}
    code = "import warnings; warnings.simplefilter('error')" + PROGRAM
    subprocess.run([sys.executable, "-c", code, str(compiled)], env=environment, check=True)
    assert len(list((tmp_path / "dpfast").glob("*.so"))) == 1


def test_without_a_linker_python_draws_and_says_so_once(home, monkeypatch):
    monkeypatch.setattr(building, "_linker", lambda: None)
    calls._say_once.cache_clear()
    frame = pl.DataFrame(
        {"n": [5, None], "s": [0.001, 0.001], "u": [1, 2], "c": ["a", "z"]}, schema_overrides={"u": pl.UInt32}
    )
    with pytest.warns(RuntimeWarning, match=r"install a C compiler \(cc\) or binutils \(ld\)"):
        expr = laplace(pl.col("n"), pl.col("s"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        others = [
            gaussian(pl.col("u"), 0.001),
            randomized_response(pl.col("c"), ["a", "b"], 50.0),
            randomized_response(pl.col("s").cast(pl.Int32), 3, 50.0),
        ]
    for engine in ("in-memory", "streaming"):
        lazy = frame.lazy().select(expr, *others)
        drawn = lazy.collect(engine=engine)
        assert drawn.schema == lazy.collect_schema()
        assert drawn.schema == {"n": pl.Int64, "u": pl.Int64, "c": pl.String, "s": pl.Int32}
        assert drawn["n"].to_list() == [5, None]
        assert drawn["c"].null_count() == 0
        assert (drawn["c"][0], drawn["s"].to_list()) == ("a", [0, 0])
        with pytest.raises(pl.exceptions.PolarsError, match="must be finite"):
            frame.lazy().select(laplace(pl.col("n") / 0.0, 1.0)).collect(engine=engine)
    literals = [laplace(pl.lit(0), 1e9), gaussian(pl.lit(2**40), 1e9), laplace(pl.lit(0.5), 1e9)]
    for literal, dtype in zip(literals, (pl.Int32, pl.Int64, pl.Float64), strict=True):
        assert frame.select(literal.alias("l")).schema == {"l": dtype}
    grouped = frame.group_by("c").agg(laplace(pl.col("u").sum(), 0.001)).sort("c")
    assert grouped["u"].to_list() == [1, 2]


@pytest.mark.parametrize("reason", ["can_compile", "link", "folders", "polars"])
def test_every_reason_ends_in_python(home, monkeypatch, plugin, reason):
    import dpfast.kernels.plugin.building as compiling

    if reason == "can_compile":
        monkeypatch.setattr(compiling, "can_compile", lambda: False)
    elif reason == "polars":
        monkeypatch.setattr(building, "_link", lambda folder, linker: shutil.copy(plugin.path, folder / "plugin.so"))
        own = building.register_plugin_function
        other = {"function_name": "gaussian", "args": [pl.lit("a")]}
        monkeypatch.setattr(building, "register_plugin_function", lambda **given: own(**{**given, **other}))
    elif reason == "folders":
        monkeypatch.setattr(building, "_folders", lambda: iter(()))
    else:
        monkeypatch.setattr(building, "_linker", lambda: [shutil.which("false") or "/bin/false"])
        monkeypatch.setattr(building, "_compiled", lambda: b"no object")
    calls._say_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="Python draws instead"):
        expr = laplace(pl.col("n"), 0.001)
    assert pl.DataFrame({"n": [7]}).select(expr).item() == 7


LINKERS = {
    "nowhere": (None, "cc cannot be run (No such file or directory)"),
    "no program": ("no program", "cc cannot be run (Exec format error)"),
    "silent": ("#!/bin/sh\nexit 1\n", "cc could not link it"),
    "telling": (
        "#!/bin/sh\necho final link failed: No space left on device >&2\necho more >&2\nexit 1\n",
        "cc could not link it (final link failed: No space left on device)",
    ),
    "of no library": (
        '#!/bin/sh\nprintf "no library" > "$3"\n',
        "it could not be loaded (",
    ),
}


@pytest.mark.parametrize("kind", LINKERS)
def test_the_reason_is_the_one_that_there_was(home, monkeypatch, tmp_path, kind):
    """What fails in the user's folder fails in the other one, too: the reason is that of the last one, in one line."""
    program, reason = LINKERS[kind]
    linker = tmp_path / "cc"
    if program is not None:
        linker.write_text(program)
        linker.chmod(0o700)
    monkeypatch.setattr(building, "_linker", lambda: [str(linker), "-shared", "-o"])
    monkeypatch.setattr(building, "_compiled", lambda: b"no object")
    with pytest.raises(building.UnavailableError) as caught:
        building.library()
    told = str(caught.value)
    assert told.startswith(reason) if reason.endswith("(") else told == reason
    assert "\n" not in told
    assert list(home.glob("*.so")) == []


def test_a_disk_that_is_full_in_one_folder_is_not_in_the_other(home, quick, monkeypatch):
    link = building._link

    def full(folder, linker):
        if folder.is_relative_to(home):
            raise building._LinkError("ld could not link it (No space left on device)")
        return link(folder, linker)

    monkeypatch.setattr(building, "_link", full)
    assert not building.library().path.is_relative_to(home)


def test_what_the_library_shows_and_needs(plugin):
    """No function of Python's, and none but the C library's and the loader's."""
    if shutil.which("nm") is None:
        pytest.skip("there is no nm")

    def names(option):
        run = subprocess.run(["nm", "-D", option, plugin.path], capture_output=True, text=True, check=True)
        return {line.split()[-1].partition("@")[0] for line in run.stdout.splitlines()}

    own = {name for name in names("--undefined-only") if not name.startswith(("_ITM", "__gmon", "__cxa"))}
    assert own <= {"malloc", "free", "getpid", "getrandom", "memset", "memcpy", "memmove", "strlen", "__tls_get_addr"}
    shown = {
        name for name in names("--defined-only") if not name.startswith(("_polars_plugin_", "dpfast_set_", "dpf_"))
    }
    shown -= {
        "_init",
        "_fini",
        "dpfast_duckdb",
        "dpfast_init_c_api",
        "dpfast_make_function",
        "dpfast_c_forget_function",
    }
    assert all(name.endswith("_under_key") for name in shown)


def test_equal_calls_are_not_merged_where_polars_can_be_told(monkeypatch):
    building._undetermined.cache_clear()
    assert building._undetermined() == {"is_deterministic": False}
    monkeypatch.setattr(building, "register_plugin_function", lambda *, plugin_path, function_name, args: None)
    building._undetermined.cache_clear()
    assert building._undetermined() == {}
    building._undetermined.cache_clear()
