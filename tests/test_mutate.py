"""The changes of ``make mutate``, and what becomes of them."""

import ast
import importlib
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
mutate = importlib.import_module("mutate")

CODE = '''
def f(a, b, *, c=None):
    """Say something."""
    if a < b and c is None:
        a += 1
        print(a, end="")
    return a * 2.5 if b else True
'''


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A repository of one module and one test."""
    path = tmp_path / "src" / "steelyard" / "part.py"
    path.parent.mkdir(parents=True)
    path.write_text(CODE)
    test = "import part\n\ndef test_f():\n    assert part.f(1, 2) == 5.0\n"
    (tmp_path / "test_part.py").write_text(
        f"import sys\nsys.path[:0] = [{str(path.parent)!r}]\n{test}"
    )
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    monkeypatch.setattr(mutate, "TARGETS", {"part": "test_part.py"})
    return tmp_path


def test_every_kind_of_change_is_made(tree):
    found = mutate.mutants_of("part")
    assert {m.kind for m in found} == {
        "comparison",
        "operator",
        "constant",
        "and, or",
        "negated condition",
        "dropped keyword",
        "removed statement",
    }
    assert len({m.source for m in found}) == len(found)
    for mutant in found:
        ast.parse(mutant.source)
        assert "Say something." in mutant.source
        assert mutant.before != mutant.after


def test_a_seed_chooses_the_same_changes(tree):
    assert mutate.choose(5, 1) == mutate.choose(5, 1) != mutate.choose(5, 2)


def test_changes_are_killed_or_survive_and_leave_the_tree_as_it_is(tree, capsys):
    found = {m.after: m for m in mutate.mutants_of("part")}
    killed = found["a += 2"]
    survived = found["if a <= b and c is None:"]
    assert mutate.outcome_of(killed, tree) == "killed"
    assert mutate.outcome_of(survived, tree) == "survived"
    assert (tree / killed.path).read_text() == CODE


def test_the_rate_leaves_out_what_is_equivalent(capsys):
    outcomes = Counter(killed=18, timeout=1, survived=1, equivalent=5)
    assert mutate._summary(outcomes) == 0
    assert "95.0%" in capsys.readouterr().out
    assert mutate._summary(Counter(killed=9, survived=1)) == 1


def test_targets_and_their_tests_exist():
    for target, tests in mutate.TARGETS.items():
        assert mutate.mutants_of(target)
        named = [word.split("::")[0] for word in tests.split() if "tests/" in word]
        assert all((ROOT / word).exists() for word in named)
