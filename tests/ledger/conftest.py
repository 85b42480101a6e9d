from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from dpfast.ledger import Ledger

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


@pytest.fixture(params=["memory", "durable", "postgresql"])
def make_ledger(request, tmp_path):
    """Make a ledger of every kind: every rule holds for all."""
    server = request.getfixturevalue("postgresql") if request.param == "postgresql" else None
    name = server and next(server.names)

    def make(*args, **kwargs):
        if request.param == "memory":
            return Ledger(*args, **kwargs)
        if server is not None:
            return Ledger.open(server.url, *args, name=name, **kwargs)
        return Ledger.open(tmp_path / "ledger.db", *args, **kwargs)

    return make
