"""Every Python block of the documentation runs, and prints what the page says."""

import doctest
import re
import runpy
from pathlib import Path

import pytest

import steelyard

ROOT = Path(__file__).resolve().parents[1]
anchor = runpy.run_path(str(ROOT / "tools/docsite/pages.py"))["anchor"]
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def test_every_block_of_the_user_guide_can_be_checked():
    guide = blocks(ROOT / "docs/user_guide.md")
    assert len(guide) > 8
    assert all(">>>" in block for block in guide)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if ">>>" in "".join(blocks(page))],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_code_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parser, names = doctest.DocTestParser(), {}
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    for number, block in enumerate(blocks(page), 1):
        test = parser.get_doctest(block, names, f"{page.name}[{number}]", None, 0)
        report: list[str] = []
        result = doctest.DocTestRunner(optionflags=flags, verbose=False).run(
            test, out=report.append, clear_globs=False
        )
        assert result.failed == 0, "".join(report)
        names = test.globs


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_to_headings_lead_to_one(page):
    text = page.read_text(encoding="utf-8")
    for name, wanted in re.findall(r"\]\((?!\w+://)([^)#\s]*)#([^)\s]+)\)", text):
        target = page.parent / name if name else page
        if target.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", target.read_text("utf-8"), re.M)
            assert wanted in map(anchor, headings), f"{name}#{wanted}"


def test_how_it_works_opens_with_the_sentence_everything_follows_from():
    text = (ROOT / "docs/how_it_works.md").read_text(encoding="utf-8")
    first = next(line for line in text.splitlines()[1:] if line.strip())
    assert first == (
        "A fitted model is a table of one row per code and one column per class; a "
        "prediction adds up one row per cell."
    )


def test_every_method_has_a_row_and_a_section_of_the_methods_page():
    page = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    headings = " ".join(re.findall(r"^## (.*)", page, re.M))
    for entry in steelyard.methods():
        row = re.search(rf"^\| `{entry.acronym}`.*$", page, re.M)
        assert row and f"`{entry.estimator.__name__}`" in row[0], entry.acronym
        assert entry.acronym.removesuffix("-CLL").removesuffix("-MSE") in headings


def test_methods_page_lists_the_bounds_and_losses_of_the_presets():
    page = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
    words = {"log": "log", "brier": "squared", "exponential": "exponential"}
    for entry in steelyard.methods():
        clf = entry.create()
        if not isinstance(clf, steelyard.WeightedNB) or entry.family == "ours":
            continue
        row = re.search(rf"^\| `{entry.acronym}`.*$", page, re.M)[0]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[3] == words.get(clf.loss, "deviance, 2")
        assert cells[4] == {1.0: "[0, 1]", None: "[0, ∞)"}[clf.bounds[1]]
        assert ("frequency" in cells[5]) == (clf.prior == "frequency")
        assert ("Laplace" in cells[5]) == (clf.smoothing == "laplace")
        assert ("Gaussian" in cells[6]) == (clf.numeric == "gaussian")
        assert (", n " in cells[6]) == (clf.variance == "sample")


def test_how_it_works_names_files_and_folders_that_exist():
    text = (ROOT / "docs/how_it_works.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<=`)[a-z_/]+/(?=`)", text))
    named |= set(re.findall(r"(?<=[` ])[a-z_]+/[a-z_/]+\.py(?=[`\n])", text))
    homes = (ROOT / "src/steelyard", ROOT)
    assert len(named) > 40
    assert [n for n in named if not any((home / n).exists() for home in homes)] == []


def test_glossary_is_sorted_and_says_where_each_word_lives():
    text = (ROOT / "docs/how_it_works.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \*\*(.+?)\*\* \| .+ \| (.+) \|$", text, re.M)
    words = [word for word, _ in rows]
    assert len(words) > 20 and words == sorted(words)
    assert all(
        re.fullmatch(r"(`\w+(/\w+)+\.(py|toml)`[,;]? ?)+", where) for _, where in rows
    )


def test_every_design_page_is_in_the_index():
    pages = {page.stem for page in (ROOT / "docs/design").glob("*.md")}
    index = (ROOT / "docs/design.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(design/(\w+)\.md\)", index)) == pages
    assert set(re.findall(r"^design/(\w+)$", index, re.M)) == pages
