"""Damaged result files."""

from __future__ import annotations

import json
from typing import Any

from fuzzing.case import Case, own_error
from fuzzing.model_files import ODD, mutate
from steelyard.lab.journal import read_journal
from steelyard.lab.results import COLUMNS, Results


def attack_journal(case: Case, number: int) -> None:
    """Read a damaged result file."""
    rng = case.rng
    header = {"steelyard": "results", "format": 1, "settings": {"a": 1}}
    row = {**dict.fromkeys(COLUMNS), "dataset": "d", "method": "m", "status": "ok"}
    row |= {"protocol": "honest", "repeat": 0}
    documents: list[Any] = [{**header, "versions": {}}]
    documents += [{**row, "fold": k, "accuracy": 0.5} for k in range(3)]
    k = rng.randrange(len(documents))
    if rng.random() < 0.6:
        changed = rng.choice([mutate(documents[k], rng), rng.choice(ODD)])
        documents[k] = changed
    data = b"".join(json.dumps(line).encode() + b"\n" for line in documents)
    for _ in range(rng.choice([0, 0, 1, 3])):
        at = rng.randrange(len(data))
        data = data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(3) :]
    path = case.folder / "results.jsonl"
    path.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
    with case.check("journal"):
        rows, error = own_error(lambda: Results.from_journal(path).rows)
        if error is None:
            read_journal(path)
            case.outcome = f"{len(rows)} rows"
