"""A PostgreSQL server in a folder of its own, for tests and benchmarks."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self


def program(name: str) -> str:
    """Return the path of a program of PostgreSQL, of the newest release there is."""
    path = shutil.which(name)
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if path is None and not places:
        raise FileNotFoundError(f"PostgreSQL is not installed: there is no {name}")
    return path or str(places[-1])


class Server:
    """A cluster in a folder, reached by a socket in it; stopped as a context ends.

    Parameters
    ----------
    seconds : int
        Longest time of a statement.

    Raises
    ------
    FileNotFoundError
        If PostgreSQL is not installed.
    """

    def __init__(self, seconds: int = 60) -> None:
        initdb, self.control = program("initdb"), program("pg_ctl")
        self.shell = program("psql")
        # The server refuses to run as root.
        self.user = ["runuser", "-u", "nobody", "--"] if os.geteuid() == 0 else []
        # Paths of sockets are short.
        self.folder = Path(tempfile.mkdtemp(prefix="sy-pg-", dir="/tmp"))
        if self.user:
            shutil.chown(self.folder, "nobody")
        self.data = str(self.folder / "data")
        self.run(initdb, "-D", self.data, "-U", "sy", "-A", "trust", "-N")
        options = (
            f"-k {self.folder} -c listen_addresses= -c fsync=off "
            f"-c statement_timeout={seconds}s -c client_min_messages=warning"
        )
        log = str(self.folder / "log")
        # A bad plan cannot be cancelled; it can run out of memory.
        start = ["-D", self.data, "-w", "-o", options, "-l", log, "start"]
        limited = 'ulimit -v 8000000; exec "$@"'
        self.run("sh", "-c", limited, "sh", self.control, *start)

    def run(self, *command: str) -> None:
        """Run a program as the server's user."""
        quiet: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        subprocess.run([*self.user, *command], check=True, cwd=self.folder, **quiet)

    def execute(self, text: str) -> list[list[str]]:
        """Run statements, and return the rows of the last query, as text."""
        command = [self.shell, "-h", str(self.folder), "-U", "sy", "-d", "postgres"]
        command += ["-X", "-q", "--csv", "-v", "ON_ERROR_STOP=1", "-f", "-"]
        done = subprocess.run(command, input=text.encode(), capture_output=True)
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        return list(csv.reader(io.StringIO(done.stdout.decode(), newline="")))[1:]

    def stop(self) -> None:
        """Stop the server, and remove its folder."""
        self.run(self.control, "-D", self.data, "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def copy(table: str, rows: Iterable[Iterable[Any]]) -> str:
    """Write statements that fill a table; None is NULL."""
    out = io.StringIO()
    for row in rows:
        cells = ("\\N" if v is None else _quoted(v) for v in row)
        out.write(",".join(cells) + "\n")
    options = "WITH (FORMAT csv, NULL '\\N')"
    return f'COPY "{table}" FROM STDIN {options};\n{out.getvalue()}\\.\n'


def _quoted(value: Any) -> str:
    text = str(value) if isinstance(value, str) else repr(value)
    return '"' + text.replace('"', '""') + '"'
