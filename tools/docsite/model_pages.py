"""Pages of models: each is one file in which values can be set."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import steelyard
from docsite.pages import write
from steelyard.lab.data.datasets import load_dataset

# Data sets, what their pages show, and options. Only the first two are bundled.
SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "breast_cancer": ("two classes and 30 numbers; rows to try", {"rows": 50}),
    "wine": ("three classes", {"rows": 50}),
    "diabetes": ("two classes, with an interval of each answer", {"rows": 50}),
    "credit-g": ("categories and numbers, in German", {"language": "de"}),
    "letter": ("26 classes", {"method": "NB"}),
    "splice": ("60 columns and interactions", {}),
    "adult": ("14 columns of 48,842 people", {"method": "NB"}),
}
CARD = "breast_cancer"


def sets_at_hand() -> list[str]:
    """Return the sets that are bundled, or in the folder of data sets."""
    folder = os.environ.get("STEELYARD_DATA")
    names = [*SETS]
    return [
        name
        for name in names
        if name in names[:2] or (folder and [*Path(folder).glob(f"{name}.arff*")])
    ]


def list_pages(source: Path) -> None:
    """Write the list of the pages."""
    lines = ["# Pages of models", "", "Each page is one file, which works offline."]
    lines += ["It computes what the model computes. `clf.to_html(path)` writes it.", ""]
    texts = {name: SETS[name][0] for name in sets_at_hand()}
    texts["scorecard"] = f"the model of {CARD} as a card of whole points"
    for name, about in texts.items():
        link = f'<a href="../_static/pages/{name}.html">{name}</a>'
        lines.append(f"- {link}: {about}")
    write(source / "gallery/pages.md", "\n".join(lines) + "\n")


def model_pages(source: Path) -> None:
    """Fit the models, and write their pages into the static files of the site."""
    folder = source / "_static" / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    for name in sets_at_hand():
        print(f"Writing the page of {name}", flush=True)
        data, options = load_dataset(name), dict(SETS[name][1])
        clf: Any = steelyard.method(options.pop("method", "SHNB"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.fit(data.table, data.target)
        n_rows = options.pop("rows", 0)
        if n_rows:
            options["rows"] = data.table[:n_rows], data.target[:n_rows]
        clf.to_html(folder / f"{name}.html", name, "class", **options)
        if name == CARD:
            clf.scorecard(data.table, data.target).to_html(folder / "scorecard.html")
