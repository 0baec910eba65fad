"""Several versions of the documentation side by side, with a list to choose from.

Releases are the tags ``v*`` and what ``docs/versions.json`` names; ``dev`` is the tree
as it is. The list works from files, without a server: every page loads ``versions.js``,
two folders up or more, and offers the same page of each other version where it exists.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_SCRIPT = (Path(__file__).parent / "versions.js").read_text(encoding="utf-8")
_START = """<!doctype html><meta charset="utf-8"><title>steelyard</title>
<meta http-equiv="refresh" content="0; url=%s/index.html">
<a href="%s/index.html">steelyard</a>
"""


def build_versions(root: Path) -> int:
    """Build the site of every release and of the tree, into ``build/site``."""
    site = root / "build/site"
    for name, ref in releases(root).items():
        if not (site / name).exists():
            print(f"Building {name}, commit {ref[:8]}", flush=True)
            build_release(root, name, ref, site / name)
    print("Building dev", flush=True)
    if status := _build(root):
        return status
    shutil.rmtree(site / "dev", ignore_errors=True)
    shutil.copytree(root / "build/docs/html", site / "dev")
    names = sorted((path.name for path in site.iterdir() if path.is_dir()), key=_order)
    join_versions(site, names)
    print(f"Open {(site / 'index.html').relative_to(root)}.")
    return 0


def releases(root: Path) -> dict[str, str]:
    """Return the commit of each minor release, the newest patch of it."""
    versions: dict[str, str] = json.loads(
        (root / "docs/versions.json").read_text("utf-8")
    )
    git = ["git", "-C", str(root), "tag", "--list", "v*", "--sort=v:refname"]
    for tag in subprocess.run(git, capture_output=True, text=True).stdout.split():
        if match := re.fullmatch(r"v(\d+\.\d+)(?:\.\d+)?", tag):
            versions[match[1]] = tag
    return versions


def build_release(root: Path, name: str, ref: str, target: Path) -> None:
    """Build the documentation of a commit by its own tool, into a folder."""
    tree = root / "build/versions" / name
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    packed = ["git", "-C", str(root), "archive", ref]
    archive = subprocess.run(packed, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
    # Newer libraries warn of what older releases call; their pages are as they were.
    if _build(tree, lenient=True):
        raise RuntimeError(f"The documentation of {name} could not be built: {tree}")
    shutil.copytree(tree / "build/docs/html", target)
    shutil.rmtree(tree)


def _build(tree: Path, lenient: bool = False) -> int:
    """Run the tool of a tree with its own package."""
    tool = tree / "tools/build_docs.py"
    if lenient:
        text = tool.read_text(encoding="utf-8").replace('"-W", "--keep-going", ', "")
        text = text.replace('"-W", "error", ', "").replace("check=True", "check=False")
        tool.write_text(text, encoding="utf-8")
    path = {"PYTHONPATH": str(tree / "src")}
    return subprocess.run(
        [sys.executable, str(tool)], cwd=tree, env={**os.environ, **path}
    ).returncode


def join_versions(site: Path, names: Sequence[str]) -> None:
    """Give every page the list of versions, and the site a start."""
    pages = {
        name: sorted(
            path.relative_to(site / name).as_posix()
            for path in (site / name).rglob("*.html")
        )
        for name in names
    }
    (site / "versions.js").write_text(_SCRIPT % json.dumps(pages), encoding="utf-8")
    (site / "index.html").write_text(_START % (names[0], names[0]), encoding="utf-8")
    for name, files in pages.items():
        for file in files:
            path = site / name / file
            up = "../" * (1 + file.count("/"))
            text = path.read_text(encoding="utf-8")
            if "versions.js" not in text:
                tag = f'<script src="{up}versions.js"></script>'
                path.write_text(text.replace("</body>", f"{tag}</body>"), "utf-8")


def _order(name: str) -> tuple[int, ...]:
    """Sort ``dev`` before releases, and these from the newest."""
    return (0,) if name == "dev" else (1, *(-int(part) for part in name.split(".")))
