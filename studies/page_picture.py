"""Take the picture of the page in README: ``python studies/page_picture.py``.

It fits six measurements of tumours, writes the page, sets three of them in the link,
and lets Chromium take the picture.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from sklearn.datasets import load_breast_cancer

import steelyard

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from report_default import DOCS, browser

COLUMNS = [
    "area",
    "texture",
    "smoothness",
    "concave points",
    "symmetry",
    "fractal dimension",
]
SET = {"worst area": 900, "worst texture": 30, "worst concave points": 0.12}


def main() -> int:
    """Write ``docs/images/page.png``."""
    program = browser()
    if program is None:
        print("no picture: no Chromium was found")
        return 1
    bunch = load_breast_cancer(as_frame=True)
    rows = bunch.data[[f"worst {name}" for name in COLUMNS]]
    clf = steelyard.ShrinkageNB().fit(rows, bunch.target_names[bunch.target])
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        clf.to_html(page, title="Benign or malignant?")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        flags += ["--window-size=1180,620", "--timeout=9000"]
        picture = f"--screenshot={DOCS / 'images/page.png'}"
        link = f"{page.as_uri()}#{urlencode(SET)}"
        command = [program, *flags, picture, link]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return 0


if __name__ == "__main__":
    sys.exit(main())
