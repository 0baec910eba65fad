"""Pages of models: each is one file in which values can be set."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import steelyard
from docsite.pages import write
from steelyard.experiments.data import load_dataset

# Data set, what its page shows, and how it is learned. Those that are not bundled are
# left out where there is no folder of data sets.
SETS: list[tuple[str, str, dict[str, Any]]] = [
    ("breast_cancer", "Two classes and 30 numbers; rows to try", {"rows": 50}),
    ("wine", "Three classes", {"rows": 50}),
    ("diabetes", "Two classes, with an interval of each answer", {"rows": 50}),
    ("credit-g", "Categories and numbers, in German", {"language": "de"}),
    ("letter", "26 classes", {"method": "NB"}),
    ("splice", "60 columns and pairs of them", {}),
    ("adult", "14 columns of 48,842 people", {"method": "NB"}),
]


def model_pages(source: Path) -> None:
    """Write the pages into the static files of the site, and the list of them."""
    folder = source / "_static" / "pages"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Pages of models", "", "Each page is one file, which works offline."]
    lines += ["It computes what the model computes. `clf.to_html(path)` writes it.", ""]
    for name, about, options in SETS:
        try:
            data = load_dataset(name)
        except FileNotFoundError:
            continue
        print(f"Writing the page of {name}", flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = steelyard.method(options.pop("method", "SHNB"))
            clf.fit(data.table, data.target)
        n_rows = options.pop("rows", 0)
        rows = (data.table[:n_rows], data.target[:n_rows]) if n_rows else None
        clf.to_html(folder / f"{name}.html", name, "class", rows=rows, **options)
        link = f'<a href="../_static/pages/{name}.html">{name}</a>'
        lines.append(f"- {link}: {about}")
        if name == "breast_cancer":
            card = clf.scorecard(data.table, data.target)
            card.to_html(folder / "scorecard.html")
            link = '<a href="../_static/pages/scorecard.html">scorecard</a>'
            lines.append(f"- {link}: the same model as a card of whole points")
    write(source / "gallery/pages.md", "\n".join(lines) + "\n")
