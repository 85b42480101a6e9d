"""What every test may use: ``--long``, a seed that shows up where a test fails, and a PostgreSQL server."""

from __future__ import annotations

import gc
import itertools
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.compiling import compile_once

compile_once()

# No time decides whether a test passes: a busy machine is ten times slower than a quiet one.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


#: The files that one worker is at for a minute or so, each by itself: were one of them last, the others would wait. The
#: first two compile kernels anew whatever the cache has, and leave them there for all that follows.
FIRST = (
    "test_compiled_code.py",
    "test_compiled_updates.py",
    "test_plugin_library.py",
    "test_shipped_mechanisms.py",
    "test_every_type.py",
    "test_every_route.py",
    "test_manners.py",
    "test_typed_examples.py",
    "test_comparisons.py",
)


#: One worker has all tests of Spark: a session takes longer to start than most of them run.
SPARK = "tests/integrations/spark/"


def pytest_xdist_make_scheduler(config, log):
    """Give a file to one worker, as ``--dist loadfile`` does, and a folder where its files share what is dear."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class LoadSharing(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return SPARK if nodeid.startswith(SPARK) else super()._split_scope(nodeid)

    return LoadSharing(config, log)


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="also run the tests that take minutes")


def pytest_collection_modifyitems(config, items):
    place = {name: number for number, name in enumerate(FIRST)}
    # Spark's come after the very first, which compiles what they need.
    items.sort(key=lambda item: 0.5 if item.nodeid.startswith(SPARK) else place.get(item.path.name, len(place)))
    if not config.getoption("--long"):
        skip = pytest.mark.skip(reason="takes minutes: run scripts/long_tests.sh")
        for item in items:
            if "long" in item.keywords:
                item.add_marker(skip)


def pytest_collection():
    """Look for no garbage while tests are collected: hardly anything is, and there is ever more to look through."""
    gc.disable()


def pytest_collection_finish():
    """Keep Python from looking through all tests, and all modules, whenever it looks for garbage: seconds each time."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture
def seed():
    """Return a fresh seed; to repeat a failure, set DPFAST_TEST_SEED to the one that pytest shows."""
    value = int(os.environ.get("DPFAST_TEST_SEED") or secrets.randbits(48))
    print(f"DPFAST_TEST_SEED={value}")
    return value


#: Where distributions keep what they leave off the PATH.
PLACES = os.pathsep.join([os.environ.get("PATH", ""), *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin")))])


class PostgresqlServer:
    """A server of the session's own: a socket in a folder of its own, no network, and the disk waited for."""

    def __init__(self, initdb, pg_ctl, folder):
        self.folder, self.pg_ctl = folder, pg_ctl
        # PostgreSQL refuses to be run by root.
        self.user = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}
        self.names = map("ledger_{}".format, itertools.count())
        if self.user:
            os.chown(folder, pwd.getpwnam("nobody").pw_uid, -1)
        self.run(initdb, "--username=tester", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
        options = f"unix_socket_directories = '{folder}'\nlisten_addresses = ''\nmax_connections = 200\nfsync = on\n"
        with open(folder / "data" / "postgresql.conf", "a") as file:
            file.write(options)
        self.run(pg_ctl, "start", "-w", "-l", str(folder / "log"))
        # When this process ends, however it does, the pipe ends and the server is stopped.
        self.stopping = subprocess.Popen(
            ["sh", "-c", 'cat; exec "$0" stop -D "$1" -m immediate', pg_ctl, str(folder / "data")],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            **self.user,
        )

    @property
    def url(self):
        return f"postgresql://tester:not-to-be-shown@/postgres?host={self.folder}"

    def run(self, *command):
        data = ["-D", str(self.folder / "data")]
        done = subprocess.run(
            [command[0], *data, *command[1:]],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            timeout=1200,
            check=False,
            **self.user,
        )
        assert done.returncode == 0, command

    def restart(self, mode="immediate"):
        self.run(self.pg_ctl, "restart", "-w", "-m", mode, "-l", str(self.folder / "log"))


@pytest.fixture(scope="session")
def postgresql():
    """Start a PostgreSQL server, or skip what needs one, as DPFAST_TEST_POSTGRESQL=0 asks for."""
    if os.environ.get("DPFAST_TEST_POSTGRESQL") == "0":
        pytest.skip("DPFAST_TEST_POSTGRESQL=0: nothing is tested with PostgreSQL")
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'dpfast[postgresql]'")
    initdb, pg_ctl = (shutil.which(program, path=PLACES) for program in ("initdb", "pg_ctl"))
    if not (initdb and pg_ctl):
        pytest.skip("no PostgreSQL server is installed: apt-get install postgresql")
    with tempfile.TemporaryDirectory(prefix="dpfast-") as folder:  # short: a socket's path has 107 bytes at most
        os.chmod(folder, 0o755)
        server = PostgresqlServer(initdb, pg_ctl, Path(folder))
        try:
            yield server
        finally:
            server.stopping.communicate(timeout=1200)
