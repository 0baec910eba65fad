"""The kit for databases that tests do not run: its statements, where they can be."""

import importlib.util
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb")

PATH = Path(__file__).parents[1] / "tools" / "warehouse_kit.py"
SPEC = importlib.util.spec_from_file_location("warehouse_kit", PATH)
kit = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kit)


def compared(rows):
    for n_rows, n_other, *differences in rows:
        assert (n_rows, n_other) == (kit.N_ROWS, 0) and max(differences) < 1e-12
    return len(rows)


def test_the_statements_agree_in_duckdb():
    with duckdb.connect() as base:
        base.execute("CREATE SCHEMA shop")
        made = kit.Kit("duckdb", "shop")
        for part in (made.load(), made.view(), made.function()):
            base.execute(part)
        queries = made.check().strip().rstrip(";").split(";\n")
        assert compared([base.execute(query).fetchone() for query in queries]) == 2


def test_the_statements_agree_in_sqlite():
    made = kit.Kit("sqlite")
    with closing(sqlite3.connect(":memory:")) as base:
        base.executescript(made.load())
        base.executescript(made.view())
        assert compared(base.execute(made.check()).fetchall()) == 1


@pytest.mark.parametrize("dialect", kit.DATABASES)
def test_statements_of_all_databases_parse(dialect):
    sqlglot = pytest.importorskip("sqlglot")
    files = kit.Kit(dialect, "shop").files()
    names = ["load", "view", *(["function"] if dialect != "oracle" else []), "check"]
    assert [*files] == [f"{k}_{name}.sql" for k, name in enumerate(names, 1)] + [
        "README.md"
    ]
    assert f"Run `{names.index('check') + 1}_check.sql`" in files["README.md"]
    if dialect == "oracle":
        pytest.skip("numbers such as 1.5d are not known to the parser")
    reads = {"sqlserver": "tsql"}.get(dialect, dialect)
    for name, text in files.items():
        if name.endswith(".sql"):
            trees = sqlglot.parse(text, dialect=reads)
            assert not [tree for tree in trees if tree is None or tree.key == "command"]
