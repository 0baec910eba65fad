"""Chains of changes to one model, after each of which all its answers must agree."""

from __future__ import annotations

import json
import pickle
import random
import re
import shutil
import subprocess
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import steelyard as sy
from fuzzing.answers import check_answers
from fuzzing.case import Case, WrongError, equal, own_error, same
from fuzzing.making import NAMES, TEXTS, make_queries
from steelyard.export.check import cells_of, check
from steelyard.export.formats import content_of
from steelyard.export.source import scoring_script

EXACT, ROUNDED, CLOSE = 0.0, 1e-12, 1e-9
# Where scores are larger, sums in another order differ by more than ``ROUNDED``.
MAX_SCORE = 300.0
N_QUERIES = 24
SENTENCE = re.compile(r"\w+Error: \S.*[.?)]$", re.DOTALL)
METHODS = ["NB", "NB", "SHNB", "SHNB", "WANBIA-CLL", "values"]
# Cut points that all tables of a chain have in common.
EDGES = (-1.0, 0.0, 1.0, 2.0)


@dataclass
class Chain:
    """A model as far as it has come, and what it is compared with."""

    case: Case
    clf: Any
    queries: pd.DataFrame
    make: Callable[[int], tuple[pd.DataFrame, Any]]
    """Makes a table of some rows, and their labels."""

    rows: list[tuple[pd.DataFrame, Any]]
    """The tables that were learned from; empty once the model is not that of a fit."""

    plain: Any = None
    """The model without edits; None where that is not known."""

    steps: list[str] = field(default_factory=list)
    scripts: list[tuple[str, bytes, dict[str, Any], Any, Any]] = field(
        default_factory=list
    )
    """For Node: step, exported script, data of a page, rows and probabilities."""


def attack_chain(case: Case, number: int) -> None:
    """Fit a model, change it two to five times, and compare after each change."""
    rng = case.rng
    make = _tables(case)
    X, y = make(rng.choice([60, 120, 300]))
    clf = _method(case, X)
    fitted = _fitted(case, clf, X, y)
    if fitted is None:
        case.about = f"{clf} {X.shape[0]}x{X.shape[1]}"
        return
    chain = Chain(case, fitted, _queries(case, X), make, [(X, y)], fitted)
    chain.steps.append(f"{type(fitted).__name__} {X.shape[0]}x{X.shape[1]}")
    check_model(chain)
    for name in _steps(rng, fitted):
        chain.steps.append(name)
        with case.check(name):
            STEPS[name][0](chain)
        case.about = ", ".join(chain.steps)
        check_model(chain)
        if case.found:
            break
    _check_scripts(chain)
    case.outcome = f"{len(chain.steps) - 1} steps"


def _tame(clf: Any, X: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of which sums in another order are the same to rounding."""
    scores = np.abs(clf.predict_joint_log_proba(X)).max(axis=1)
    return X[scores < MAX_SCORE]


def _refusal(chain: Chain, attempt: Callable[[], Any]) -> tuple[Any, str | None]:
    """Return a result, or a refusal, which must be a sentence."""
    result, refused = own_error(attempt)
    if refused is not None:
        chain.steps[-1] += f" (refused: {refused[:60]})"
        if not SENTENCE.match(refused):
            raise WrongError(f"no sentence: {refused}")
    return result, refused


# ------------------------------------------------------------------------------ tables


def _tables(case: Case) -> Callable[[int], tuple[pd.DataFrame, Any]]:
    """Return what makes tables of one kind, each of new rows."""
    rng = case.rng
    kinds = ["number", "text", *rng.choices(list(CELLS), k=rng.randrange(1, 5))]
    odd = [name for name in NAMES if name not in ("prediction", "row")]
    plain = [f"x{j}" for j in range(9)]
    names = rng.sample(plain if rng.random() < 0.7 else odd, len(kinds))
    words = rng.sample([w for w in TEXTS if w], rng.choice([2, 3, 6]))
    gaps = [rng.choice([0.0, 0.0, 0.1, 0.3]) for _ in names]
    labels: Any = rng.choice([["no", "yes"], ["a", "b", "it's"], [0, 1], [False, True]])

    def make(n: int) -> tuple[pd.DataFrame, Any]:
        noise = case.noise
        codes = noise.integers(0, len(labels), n)
        codes[: len(labels)] = np.arange(len(labels))
        columns = {}
        for name, kind, share in zip(names, kinds, gaps, strict=True):
            cells = pd.Series(CELLS[kind](codes, noise, words))
            columns[name] = cells.mask(noise.random(n) < share)
        return pd.DataFrame(columns), np.array(labels)[codes]

    return make


def _words(codes: Any, noise: np.random.Generator, words: list[str]) -> Any:
    other = noise.integers(0, len(words), len(codes))
    chosen = np.where(noise.random(len(codes)) < 0.5, codes % len(words), other)
    return np.array(words, dtype=object)[chosen]


def _days(codes: Any, noise: np.random.Generator, words: list[str]) -> Any:
    days = noise.integers(0, 500, len(codes)) + 100 * codes
    return pd.Timestamp("2023-05-06") + pd.to_timedelta(days, unit="D")


CELLS: dict[str, Callable[..., Any]] = {
    "number": lambda codes, noise, words: noise.normal(size=len(codes)) + codes,
    "whole": lambda codes, noise, words: noise.integers(-2, 4, len(codes)) + codes,
    "text": _words,
    "date": _days,
    "identifier": lambda codes, noise, words: np.array(
        [f"c{k:06d}" for k in noise.choice(10**6, len(codes), replace=False)],
        dtype=object,
    ),
    "constant": lambda codes, noise, words: np.full(len(codes), 4.5),
    "flag": lambda codes, noise, words: (noise.random(len(codes)) < 0.5).astype(object),
}


def _queries(case: Case, X: pd.DataFrame) -> pd.DataFrame:
    """Return rows to score; dates are those of the table, and missing."""
    dates = list(X.select_dtypes("datetime"))
    queries = make_queries(X.drop(columns=dates), case.rng)
    for name in dates:
        cells = X[name].sample(len(queries), random_state=case.rng.randrange(2**32))
        queries[name] = cells.to_numpy()
        queries.loc[queries.index % 5 == 1, name] = pd.NaT
    return queries[list(X)]


# ------------------------------------------------------------------------------ models


def _method(case: Case, X: pd.DataFrame) -> Any:
    """Return a method with random settings, none of which are searched for."""
    rng, name = case.rng, case.rng.choice(METHODS)
    settings: dict[str, Any] = {"missing": rng.choice(["skip", "skip", "value"])}
    if name == "SHNB":
        settings["strength"] = rng.choice([(1.0, 1.0, 1.0), (1.0, 4.0, 1.0)])
        pair = tuple(rng.sample(list(X), 2))
        settings["interactions"] = rng.choice([None, None, [pair]])
    else:
        fixed = sy.FixedEdgesDiscretizer(EDGES)
        ways = ["mdl", "equal-frequency", "gaussian", ("mdl", "gaussian"), fixed]
        settings["numeric"] = rng.choice([*ways, fixed] if name == "NB" else ways)
        settings["class_weight"] = rng.choice([None, None, "balanced"])
    if name in ("WANBIA-CLL", "values"):
        settings["lam"] = rng.choice([0.1, 1.0])
    if name == "values":
        return sy.ValueWeightedNB(**settings, bounds=None)
    return sy.method(name, **settings)


def _fitted(case: Case, clf: Any, X: pd.DataFrame, y: Any) -> Any:
    with case.check("fit"):
        return own_error(lambda: clf.fit(X, y))[0]


def _again(clf: Any) -> Any:
    """Return a classifier with the same settings that is not fitted."""
    return type(clf)(**clf.get_params(deep=False))


# ------------------------------------------------------------------------------- steps


def edit(chain: Chain) -> None:
    """Change the model by hand, and see that it says what was asked for."""
    rng, clf = chain.case.rng, chain.clf
    asked = _random_edit(chain)
    options: dict[str, Any] = {"break_shapes": rng.random() < 0.2}
    if rng.random() < 0.2:
        options["recalibrate"] = chain.make(40)
    made, refused = _refusal(chain, lambda: clf.edited(asked, "why", **options))
    if refused is not None:
        return
    chain.steps[-1] += f" {asked}"
    chain.rows = []
    equal(
        "number of edits",
        len(made.edits_),
        len(getattr(clf, "edits_", [])) + len(options.keys() & {"recalibrate"}) + 1,
    )
    chain.clf = made
    if "recalibrate" not in options:
        _check_edit(chain, clf, asked)


def _random_edit(chain: Chain) -> dict[str, Any]:
    """Return an edit of a column or an interaction; some ask for what there is not."""
    rng, clf, X = chain.case.rng, chain.clf, chain.queries
    schema = clf.encoder_.schema_
    interactions = [
        interaction["columns"] for interaction in getattr(clf, "interactions_", [])
    ]
    way: dict[str, Any] = {"remove": True}
    if rng.random() < 0.3:
        way = {"scale": rng.choice([0.0, 0.5, 1.0, 2.0, -1.0])}
    if interactions and rng.random() < 0.3:
        return {"interaction": list(rng.choice(interactions)), **way}
    odd = rng.random() < 0.1
    k = rng.randrange(schema.n_columns)
    edit: dict[str, Any] = {"column": "no such column" if odd else schema.names[k]}
    if rng.random() < 0.25:
        return {**edit, **way}
    feature = schema.features[k]
    ways: dict[str, Any] = {"flatten": True, "merge": True}
    ways["set"] = rng.choice([-2.0, 0.0, 0.3])
    if feature.kind == "categorical":
        cells = [*feature.values, *([None] if feature.missing_is_value else [])]
        if rng.random() < 0.1 and edit["column"] in X:
            cells += [*X[edit["column"]], None]
        edit["values"] = rng.sample(cells, min(2, len(cells)))
    else:
        ways |= {"monotone": rng.choice(["increasing", "decreasing"])}
        ways |= {"interpolate": True}
        if rng.random() < 0.6:
            low, high = rng.choice([(-9.0, 0.5), (0.0, 1.5), (0.5, 9.0), (9.0, 0.0)])
            edit |= {"from": low, "to": high}
    if len(clf.classes_) > 2 or rng.random() < 0.2:
        edit["class"] = rng.choice(clf.classes_.tolist())
    kind = rng.choice(list(ways))
    return {**edit, kind: ways[kind]}


def _check_edit(chain: Chain, before: Any, asked: dict[str, Any]) -> None:
    """Compare the explanation of rows with what was asked for."""
    X = _tame(before, chain.queries)
    if not len(X):
        return
    old, new = (_of_sums(clf).explain_local(X) for clf in (before, chain.clf))
    name = asked.get("column") or " × ".join(asked["interaction"])
    if name not in new.attributes:
        name = " × ".join(reversed(asked["interaction"]))
    j = new.attributes.index(name)
    others = [k for k in range(len(new.attributes)) if k != j]
    was, now = (e.link_scale * e.contributions for e in (old, new))
    same("contributions of other columns", was[:, others], now[:, others], CLOSE)
    if "remove" in asked:
        same("contributions of a removed column", 0.0 * now[:, j], now[:, j], CLOSE)
    if "scale" in asked:
        same("scaled contributions", asked["scale"] * was[:, j], now[:, j], CLOSE)
    schema = chain.clf.encoder_.schema_
    if "set" in asked and schema.features[schema.labels().index(name)].is_coded:
        k = len(new.classes)
        c = new.classes.tolist().index(asked.get("class", new.classes[1]))
        spoken = (k * now[:, j, c] - now[:, j].sum(axis=1)) / (k - 1)
        is_changed = np.abs(now[:, j] - was[:, j]).max(axis=1) > CLOSE
        same(
            "evidence that was set",
            asked["set"],
            spoken[is_changed].mean() if is_changed.any() else asked["set"],
            CLOSE,
        )


def undo(chain: Chain) -> None:
    """Go back to the model without edits, to the bit."""
    chain.clf = chain.clf.unedited()
    if hasattr(chain.clf, "edits_"):
        raise WrongError("there are edits after all were undone")


def other_prior(chain: Chain) -> None:
    """Take other priors, and see that the way back ends where it began."""
    shares = chain.case.noise.dirichlet(np.ones(len(chain.clf.classes_)) * 3.0)
    shares = np.clip(shares, 0.01, None)
    shares /= shares.sum()
    clf = chain.clf
    made, refused = _refusal(chain, lambda: clf.with_prior(shares))
    if refused is not None:
        return
    back, X = made.with_prior(np.exp(clf.class_log_prior_)), _tame(clf, chain.queries)
    p = clf.predict_proba(X)
    same("with the old priors again", p, back.predict_proba(X), ROUNDED)
    ratio = shares / np.exp(clf.class_log_prior_)
    # Averages over missing cells are of the new scores, not the scores of averages.
    sums, p = _of_sums(made), _of_sums(clf).predict_proba(X)
    moved = p * ratio / (p * ratio).sum(axis=1, keepdims=True)
    same("new shares", moved, sums.predict_proba(X), CLOSE)
    chain.clf, chain.rows = made, []
    if chain.plain is not None:
        chain.plain = chain.plain.with_prior(shares)


def merge_sites(chain: Chain) -> None:
    """Merge with the model of another table, and compare with a fit to both."""
    clf, (X, y) = chain.clf, chain.make(chain.case.rng.choice([60, 120]))
    other = _fitted(chain.case, _again(clf), X, y)
    if other is None:
        return
    both = [clf, other]
    if chain.case.rng.random() < 0.5:
        both.reverse()
    made, refused = _refusal(chain, lambda: sy.merge(*both))
    if refused is None:
        _refuse_if_edited(chain, "merged")
        _follow(chain, made, (X, y))


def next_chunk(chain: Chain) -> None:
    """Learn from more rows, and compare with a fit to all of them."""
    X, y = chain.make(chain.case.rng.choice([30, 60]))
    if not hasattr(chain.clf, "partial_fit"):
        return
    # What partial_fit changes is a copy; the model so far may be that to go back to.
    clf = pickle.loads(pickle.dumps(chain.clf))
    made, refused = _refusal(chain, lambda: clf.partial_fit(X, y))
    if refused is None:
        _refuse_if_edited(chain, "learned from more rows")
        _follow(chain, made, (X, y))


def _refuse_if_edited(chain: Chain, what: str) -> None:
    if hasattr(chain.clf, "edits_"):
        raise WrongError(f"an edited model was {what}, and its edits are lost")


def _follow(chain: Chain, made: Any, rows: tuple[pd.DataFrame, Any]) -> None:
    """Take a model of more rows; it is that of one fit where cut points are."""
    chain.rows = [*chain.rows, rows] if chain.rows else []
    chain.clf = chain.plain = made
    counts = isinstance(made, sy.NaiveBayes)
    if not (counts and chain.rows and _shares_cuts(made)):
        return
    X = pd.concat([X for X, _ in chain.rows], ignore_index=True)
    whole = _fitted(
        chain.case, _again(made), X, np.concatenate([y for _, y in chain.rows])
    )
    if whole is not None:
        X = _tame(whole, chain.queries)
        p = whole.predict_proba(X)
        same("a fit to all rows", p, made.predict_proba(X), CLOSE)


def _shares_cuts(clf: Any) -> bool:
    """Whether cut points of numbers, and of dates, do not depend on the rows."""
    return not any(
        feature.kind == "binned" and feature.edges != EDGES
        for feature in clf.encoder_.schema_.features
    )


def shape(chain: Chain) -> None:
    """Fit again with a curve that must rise, where the method takes one."""
    names = [name for name in chain.queries if chain.queries[name].dtype == float]
    X, y = chain.make(120)
    if "constraints" not in chain.clf.get_params() or not names:
        return
    target = chain.clf.classes_.tolist()[-1]
    wanted = {chain.case.rng.choice(names): ("increasing", target)}
    clf = _again(chain.clf).set_params(constraints=wanted)
    made, refused = _refusal(chain, lambda: clf.fit(X, y))
    if refused is None:
        chain.clf = chain.plain = made
        chain.rows = [(X, y)]


def save(chain: Chain) -> None:
    """Load what was saved: the same model, which is saved as the same file."""
    path = chain.case.folder / "model.json"
    chain.clf.save(path)
    loaded = sy.load(path)
    text = path.read_bytes()
    loaded.save(path)
    equal("the file of the loaded model", path.read_bytes() == text, True)
    _same_model(chain, loaded)


def pickled(chain: Chain) -> None:
    """Go on with a pickle."""
    _same_model(chain, pickle.loads(pickle.dumps(chain.clf)))


def _same_model(chain: Chain, other: Any) -> None:
    clf, X = chain.clf, chain.queries
    same("probabilities", clf.predict_proba(X), other.predict_proba(X), EXACT)
    edits = [[str(edit) for edit in getattr(c, "edits_", [])] for c in (clf, other)]
    equal("edits", *edits)
    equal("notices", *[[str(n) for n in c.notices_] for c in (clf, other)])
    chain.clf = other


STEPS: dict[str, tuple[Callable[[Chain], None], str, int]] = {
    "edited": (edit, "", 4),
    "unedited": (undo, "", 1),
    "with_prior": (other_prior, "", 2),
    "merge": (merge_sites, "NaiveBayes", 2),
    "partial_fit": (next_chunk, "NaiveBayes ShrinkageNB", 2),
    "constraint": (shape, "ShrinkageNB ValueWeightedNB", 3),
    "saved": (save, "", 1),
    "pickled": (pickled, "", 1),
}
"""What is done, the methods that take it where not all do, and how often."""


def _steps(rng: random.Random, clf: Any) -> list[str]:
    """Choose steps, now and then one that the method refuses."""
    method = type(clf).__name__
    names = [
        name
        for name, (_, methods, _) in STEPS.items()
        if not methods or method in methods.split() or rng.random() < 0.05
    ]
    often = [STEPS[name][2] for name in names]
    return rng.choices(names, often, k=rng.randrange(2, 6))


# ------------------------------------------------------------------------------ checks


def check_model(chain: Chain) -> None:
    """Compare all ways in which a model gives an answer."""
    case, clf, X = chain.case, chain.clf, chain.queries
    p = None
    with case.check("answers"):
        p = check_answers(clf, X)
    if p is None:
        return
    with case.check("without edits"):
        back = clf.unedited().predict_proba(X)
        same("without edits", chain.plain.predict_proba(X), back, EXACT)
    X = _tame(clf, X)
    p = clf.predict_proba(X)
    if not len(X):
        return
    with case.check("explanation"):
        _check_explanation(clf, X, p)
    with case.check("interval"):
        _check_interval(clf, X, p)
    with case.check("shapes"):
        _check_shapes(chain)
    with case.check("drift"):
        _refusal(chain, lambda: clf.drift(X))
        _refusal(chain, lambda: clf.check(X))
    _check_exports(chain, X, p)


def _check_explanation(clf: Any, X: pd.DataFrame, p: Any) -> None:
    explained = clf.explain_local(X)
    same("explained probabilities", p, explained.probabilities, ROUNDED)
    scores, rest = explained.scores, 0.0
    if explained.averaging is None:
        same("explained scores", clf.predict_joint_log_proba(X), scores, CLOSE)
    else:
        rest = explained.averaging
    total = explained.base + explained.contributions.sum(axis=1) + rest
    same("sum of contributions", scores, total, CLOSE)
    split = clf.explain_local(X, interactions="split")
    total = split.base + split.contributions.sum(axis=1) + rest
    same("sum of halves", scores, total, CLOSE)
    clf.explain_global()


def _of_sums(clf: Any) -> Any:
    """Return a classifier that adds up the cells that are known."""
    if "unknown" not in clf.get_params():
        return clf
    return copy(clf).set_params(unknown="sum")


def _check_interval(clf: Any, X: pd.DataFrame, p: Any) -> None:
    ends, _ = own_error(lambda: clf.predict_interval(X))
    if (
        ends is not None
        and not ((ends[..., 0] <= p + CLOSE) & (p <= ends[..., 1] + CLOSE)).all()
    ):
        raise WrongError("a probability outside its interval")


def _check_shapes(chain: Chain) -> None:
    """Follow a curve that must rise, unless an edit was allowed to break it."""
    clf = chain.clf
    if getattr(clf, "constraints", None) is None or any(
        "not any more" in str(edit) for edit in getattr(clf, "edits_", [])
    ):
        return
    ((name, (_, target)),) = clf.constraints.items()
    if any(
        name in interaction["columns"]
        for interaction in getattr(clf, "interactions_", [])
    ):
        return
    grid = pd.concat([chain.queries.iloc[[1]]] * 50, ignore_index=True)
    grid[name] = np.linspace(-4.0, 6.0, 50)
    # Of more classes, an average over missing cells may bend the odds of two.
    answering = clf if len(clf.classes_) == 2 else _of_sums(clf)
    logs = answering.predict_log_proba(grid)
    c = clf.classes_.tolist().index(target)
    for k in range(len(clf.classes_)):
        if (np.diff(logs[:, c] - logs[:, k]) < -CLOSE).any():
            raise WrongError("a curve that must rise falls")


def _check_exports(chain: Chain, X: pd.DataFrame, p: Any) -> None:
    """Score by the scorer and by engines here; keep what Node is to score."""
    case, clf = chain.case, chain.clf
    with case.check("scorer"):
        score, refused = _refusal(chain, clf.scorer)
        if refused is None:
            answers = [list(score(row).values()) for row in cells_of(X)]
            same("scorer", p, answers, CLOSE)
    for kind, options in (("py", {}), ("sql", {"dialect": "sqlite"})):
        with case.check(kind):
            agreement, refused = _refusal(
                chain, partial(check, clf, X, kind, **options)
            )
            if refused is None and not agreement.agrees:
                raise WrongError(str(agreement))
    with case.check("page"):
        page, refused = _refusal(chain, lambda: clf.page(rows=X).text)
        script, _ = _refusal(chain, lambda: content_of(clf, "js"))
        if refused is None:
            (data,) = re.findall(r'json" id="model">(.*?)</script>', page)
            shown = json.loads(data)
            chain.scripts.append((chain.steps[-1], script, shown, cells_of(X), p))


_NODE = """
const [scripts, chains] = JSON.parse(require("fs").readFileSync(0));
const page = require(scripts);
console.log(JSON.stringify(chains.map(({script, shown, rows}) => [
  rows.map(require(script).posterior),
  shown.rows.cells.map((row) => page.posterior(shown.model, row)),
])));
"""


def _check_scripts(chain: Chain) -> None:
    """Score all that was kept by Node, in one process."""
    node, folder, given = shutil.which("node"), chain.case.folder, []
    if node is None or not chain.scripts:
        return
    with chain.case.check("Node"):
        for k, (_, script, shown, rows, _) in enumerate(chain.scripts):
            path = folder / f"model{k}.js"
            path.write_bytes(script)
            given.append({"script": str(path), "shown": shown, "rows": rows})
        scoring = str(folder / "scoring.js")
        (folder / "scoring.js").write_text(scoring_script(), encoding="utf-8")
        done = subprocess.run(
            [node, "-e", _NODE],
            input=json.dumps([scoring, given]),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise WrongError(done.stderr.strip()[-300:])
        answers = json.loads(done.stdout)
        for (step, *_, p), (script, page) in zip(chain.scripts, answers, strict=True):
            same(f"JavaScript after {step}", p, script, CLOSE)
            same(f"page after {step}", p, page, CLOSE)
