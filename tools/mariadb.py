"""A MariaDB server in a folder of its own, for tests and benchmarks."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self


class Server:
    """A server in a folder, reached by a socket in it; stopped as a context ends.

    Raises
    ------
    FileNotFoundError
        If MariaDB is not installed.
    """

    def __init__(self) -> None:
        programs = {name: shutil.which(name) for name in ("mariadbd", "mariadb")}
        for name, path in programs.items():
            if path is None:
                raise FileNotFoundError(f"MariaDB is not installed: there is no {name}")
        self.folder = Path(tempfile.mkdtemp(prefix="sy-db-", dir="/tmp"))
        socket, data = self.folder / "socket", self.folder / "data"
        user = [f"--user={'root' if os.geteuid() == 0 else os.environ.get('USER', '')}"]
        install = ["mariadb-install-db", "--no-defaults", f"--datadir={data}"]
        install += ["--auth-root-authentication-method=normal", *user]
        quiet: dict[str, Any] = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
        subprocess.run(install, check=True, **quiet)
        start = [str(programs["mariadbd"]), "--no-defaults", f"--datadir={data}", *user]
        start += [f"--socket={socket}", "--skip-networking", "--skip-grant-tables"]
        self.process = subprocess.Popen(start, **quiet)
        self.shell = [str(programs["mariadb"]), "--no-defaults", f"--socket={socket}"]
        self.shell += [
            "--default-character-set=utf8mb4",
            "--batch",
            "--raw",
            "--skip-column-names",
        ]
        for _ in range(200):
            if socket.exists() and self._run("SELECT 1;").returncode == 0:
                break
            time.sleep(0.1)
        self.execute("CREATE DATABASE sy CHARACTER SET utf8mb4;")
        self.shell += ["--database=sy"]

    def _run(self, text: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.shell, input=text.encode(), capture_output=True)

    def execute(self, text: str) -> list[list[str]]:
        """Run statements, and return the rows of the last query, as text."""
        done = self._run(text)
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        return [line.split("\t") for line in done.stdout.decode().split("\n")[:-1]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def insert(table: str, rows: Iterable[Iterable[Any]]) -> str:
    """Write a statement that fills a table; None is NULL."""
    lines = (f"({', '.join(map(_literal, row))})" for row in rows)
    return f"INSERT INTO `{table}` VALUES\n" + ",\n".join(lines) + ";\n"


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool | int):
        return "NULL" if value is None else str(value)
    if isinstance(value, float):
        return f"{value!r}" if "e" in repr(value) else f"{value!r}e0"
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
