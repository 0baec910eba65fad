"""Checks of a built site: links that lead nowhere, and words that search must find."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What people look for, who do not know our words.
SOUGHT = (
    "leakage imbalance missing calibration monotone SQL scorecard drift install "
    "outlier overfitting interaction explain threshold fairness Spark GPU"
).split()


class _Page(HTMLParser):
    """The links of a page, and the anchors on it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what an element points to, and what points to it."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            elif value and name in ("id", "name"):
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Return links within a site whose file or anchor does not exist, sorted."""
    pages = {
        path: _Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path
            if parts.path:
                target = (path.parent / unquote(parts.path)).resolve()
            known = pages.get(target)
            lost = parts.fragment and known and unquote(parts.fragment)
            if not target.exists() or (lost and known and lost not in known.anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    return sorted(set(broken))


def not_found(site: Path) -> list[str]:
    """Return the sought words that the site's search does not know."""
    from sphinx.search.en import SearchEnglish

    index = (site / "searchindex.js").read_text(encoding="utf-8")
    terms = index.partition('"terms":')[2] or index.partition("terms:")[2]
    words = set(re.findall(r'"?([\w-]+)"?:', terms))
    stem = SearchEnglish({}).stem
    return [word for word in SOUGHT if stem(word.lower()) not in words]
