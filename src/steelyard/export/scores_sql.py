"""Scores, probabilities and the predicted class of a plan as SQL expressions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from steelyard.export.plan import Mixture, Node, Pairs, Plan, Sum, Vote
from steelyard.export.statement import Statement
from steelyard.export.terms_sql import Terms, picks_of

# Powers stay within these: PostgreSQL refuses exponentials that underflow.
_LARGEST_POWER = 700.0


class ScoringQuery:
    """The stages from scores to probabilities and the predicted class."""

    def __init__(
        self, plan: Plan, to: Statement, contributions: bool, decimals: int | None
    ) -> None:
        self.plan, self.to, self.contributions = plan, to, contributions
        self.terms = Terms(plan, to, decimals)
        self.number = to.dialect.number
        self.contributed: list[tuple[str, str]] = []
        """Contributions: expressions and the names of their columns."""

    def outputs(self, probabilities: bool) -> list[tuple[str, str]]:
        """Return what the statement selects: expressions and names."""
        root, classes = self.plan.root, self.plan.classes
        if isinstance(root, Sum):
            scores = self.scores(root)
            best = self.winner(root, scores)
            if not probabilities:
                return [(best, "prediction"), *self.score_outputs(root, scores)]
            proba = self.softmax(root, scores)
        else:
            proba = [self.to.let(p, "p") for p in self.posterior(root)]
            best = self.first_best(root, proba)
        named = [(p, f"p({c})") for p, c in zip(proba, classes, strict=True)]
        return [(best, "prediction"), *named, *self.contributed]

    def score_outputs(
        self, root: Sum, scores: Sequence[str | None]
    ) -> list[tuple[str, str]]:
        """Return scores in place of probabilities."""
        classes = self.plan.classes[1:] if root.is_odds else self.plan.classes
        named = [
            ("NULL" if z is None else self.scaled(z, root.scale), f"score({c})")
            for z, c in zip(scores, classes, strict=True)
        ]
        return [*named, *self.contributed]

    # ----------------------------------------------------------------------- scores

    def scores(self, node: Sum) -> list[str | None]:
        """Name the scores of a sum, or its log-odds; None for an impossible class."""
        picks, attributes = picks_of(node), self.plan.attributes
        base = node.base[1:] if self.plan.unit else [pick(node.base) for pick in picks]
        sums = [[self.number(b)] if b > float("-inf") else [] for b in base]
        named: dict[tuple[int, int], str] = {}
        for j, terms in groupby(self.terms.of(node), itemgetter(0)):
            for i, numbers in enumerate(
                zip(*(added for _, added in terms), strict=True)
            ):
                parts = [expression for expression in numbers if expression]
                if self.contributions and parts:
                    named[j, i] = self.to.let(self.to.sum(parts), attributes[j])
                    parts = [named[j, i]]
                sums[i] += parts if sums[i] else []
            if self.to.is_crowded():
                sums = [
                    [self.total(parts, "so far")] if parts else [] for parts in sums
                ]
                self.to.wait_for(name for parts in sums for name in parts)
        if self.contributions:
            self.add_contributions(node, named)
        if self.plan.unit:
            total = self.total(sums[0], self.plan.unit)
            self.contributed.insert(0, (total, self.plan.unit))
            return [self.to.let(f"({total} - {self.number(node.base[0])})", "odds")]
        words = ["odds"] if node.is_odds else [f"score {c}" for c in self.labels(node)]
        by_class = zip(sums, words, strict=True)
        return [self.total(parts, of) if parts else None for parts, of in by_class]

    def total(self, parts: Sequence[str], about: str) -> str:
        """Name a sum."""
        return self.to.let(self.to.sum(parts), about)

    def labels(self, node: Node) -> list[Any]:
        """Return the classes of a node."""
        return [self.plan.classes[c] for c in node.classes]

    def add_contributions(self, node: Sum, named: dict[tuple[int, int], str]) -> None:
        """Add the contribution of every attribute, relative to the average row."""
        unit = self.plan.unit
        for j, attribute in enumerate(self.plan.attributes):
            for i, pick in enumerate(picks_of(node)):
                mean = pick(node.centre[j]) if node.centre else 0.0
                scale = 1.0 if unit else node.scale
                what = self.away(named.get((j, i), ""), mean, scale)
                # Log-odds of two classes are those of the second.
                label = self.plan.classes[i + node.is_odds]
                name = (
                    f"{unit}({attribute})"
                    if unit
                    else f"evidence({attribute}, {label})"
                )
                self.contributed.append((what, name))

    def away(self, what: str, mean: float, scale: float) -> str:
        """Write a contribution ('' for 0) relative to the average row."""
        if not what:
            return self.number(0.0 - scale * mean)
        return self.scaled(f"({what} - {self.number(mean)})" if mean else what, scale)

    def winner(self, node: Sum, scores: Sequence[str | None]) -> str:
        """Write the class of the largest score, a tie in order."""
        return self.choice(
            node, scores, list(map(self.to.dialect.value, self.labels(node)))
        )

    def choice(
        self, node: Sum, scores: Sequence[str | None], results: Sequence[str]
    ) -> str:
        """Write the result of the class of the largest score."""
        if node.is_odds:
            test = ">=" if node.tie_order[0] == 1 else ">"
            zero = self.number(0.0)
            yes, no = results[1], results[0]
            return f"CASE WHEN {scores[0]} {test} {zero} THEN {yes} ELSE {no} END"
        order = [c for c in node.tie_order if scores[c] is not None]
        return self.first_of([(str(scores[c]), results[c]) for c in order])

    def first_of(self, candidates: list[tuple[str, str]]) -> str:
        """Write the result of the first candidate that has the largest number."""
        *others, (_, last) = candidates
        if not others:
            return last
        top = self.top([number for number, _ in candidates])
        tests = " ".join(f"WHEN {number} >= {top} THEN {r}" for number, r in others)
        return f"CASE {tests} ELSE {last} END"

    def first_best(self, node: Node, posterior: Sequence[str]) -> str:
        """Write the class of the largest probability, a tie in order."""
        labels = list(map(self.to.dialect.value, self.labels(node)))
        return self.first_of([(posterior[c], labels[c]) for c in node.tie_order])

    def top(self, numbers: Sequence[str]) -> str:
        """Name the largest of some numbers."""
        if len(numbers) == 1:
            return numbers[0]
        return self.to.let(self.to.largest(sorted(numbers)), "top")

    # ------------------------------------------------------------------ probabilities

    def posterior(self, node: Node) -> list[str]:
        """Write the probabilities of a node's classes."""
        if isinstance(node, Sum):
            return self.softmax(node, self.scores(node))
        if isinstance(node, Vote):
            return self.vote(node)
        parts = [[self.to.let(p, "p") for p in self.posterior(q)] for q in node.parts]
        terms: list[list[str]] = [[] for _ in node.classes]
        if isinstance(node, Mixture):
            for share, part in zip(node.shares, parts, strict=True):
                for own, p in zip(terms, part, strict=True):
                    own.append(f"{self.number(share)} * {p}")
            return list(map(self.to.sum, terms))
        assert isinstance(node, Pairs)
        for pair, part in zip(node.pairs, parts, strict=True):
            for c, p in zip(pair, part, strict=True):
                terms[c].append(p)
        n = self.number(float(len(node.pairs)))
        return [f"({self.to.sum(own)} / {n})" for own in terms]

    def softmax(self, node: Sum, scores: Sequence[str | None]) -> list[str]:
        """Write posterior probabilities of scores, or of log-odds."""
        if node.is_odds:
            odds = self.scaled(str(scores[0]), node.scale)
            power, one = self.power(odds), self.number(1.0)
            return [f"{one} / ({one} + {power})", f"{power} / ({one} + {power})"]
        return self.shares(scores, node.scale)

    def shares(self, scores: Sequence[str | None], scale: float) -> list[str]:
        """Write the softmax of scores."""
        possible = [z for z in scores if z is not None]
        top = self.top(possible)
        # Classes of equal tables have one score, and each has its part in the total.
        powers = [
            None if z is None else self.power(self.scaled(f"({z} - {top})", scale))
            for z in scores
        ]
        total = self.total([e for e in powers if e is not None], "total")
        return [self.number(0.0) if e is None else f"{e} / {total}" for e in powers]

    def scaled(self, what: str, scale: float) -> str:
        """Write a product; a factor of one is left out."""
        return what if scale == 1.0 else f"{self.number(scale)} * {what}"

    def power(self, exponent: str) -> str:
        """Name an exponential, of a number within bounds."""
        dialect, far = self.to.dialect, _LARGEST_POWER
        above = f"{dialect.smallest}({self.number(far)}, {exponent})"
        return self.to.let(
            f"exp({dialect.largest}({self.number(-far)}, {above}))", "exp"
        )

    def vote(self, node: Vote) -> list[str]:
        """Write the probabilities of a vote."""
        if node.form == "elkan":
            one, two = self.number(1.0), self.number(2.0)
            parts = []
            for vote, part in zip(node.votes, node.parts, strict=True):
                p = self.to.let(self.posterior(part)[1], "p")
                parts.append(f"{self.number(vote)} * ({two} * {p} - {one})")
            power = self.power(f"-{self.total(parts, 'votes')}")
            second = self.to.let(f"{one} / ({one} + {power})", "p")
            return [f"{one} - {second}", second]
        positions = list(map(str, range(len(node.classes))))
        chosen = [
            self.to.let(self.choice(part, self.scores(part), positions), "chosen")
            for part in node.parts
        ]
        zero = self.number(0.0)
        votes = list(zip(chosen, map(self.number, node.votes), strict=True))
        totals: list[str | None] = [
            self.total(
                [f"CASE {t} WHEN {c} THEN {v} ELSE {zero} END" for t, v in votes],
                "votes",
            )
            for c in positions
        ]
        return self.shares(totals, 1.0)
