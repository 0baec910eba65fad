"""The documentation site is whole; ``make docs`` builds it, which takes a minute."""

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

import steelyard
from steelyard.classifiers.registry import classes, homes
from steelyard.cli.run import main
from steelyard.persistence.content import PARTS
from steelyard.persistence.fitted import ATTRIBUTES
from steelyard.persistence.models import MODELS

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
CHECKS = runpy.run_path(str(ROOT / "tools/docsite/checks.py"))


@pytest.fixture(scope="module")
def builder():
    return runpy.run_path(str(ROOT / "tools/build_docs.py"))


@pytest.fixture(scope="module")
def source(builder, tmp_path_factory):
    """All pages of the site, before Sphinx sees them."""
    folder = tmp_path_factory.mktemp("docs") / "source"
    builder["assemble"](folder)
    return folder


def blocks(text, language):
    """Return the code blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


def listed(page):
    """Return the pages below a page, as its tables of contents name them."""
    found = set()
    for body in blocks(page.read_text(encoding="utf-8"), r"\{toctree\}"):
        names = [line for line in body.splitlines() if line and line[0] != ":"]
        for name in names:
            found.update(
                page.parent.glob(f"{name}.md"), page.parent.glob(f"{name}.rst")
            )
    return found


def test_captions_landmarks_and_empty_headers_are_as_screen_readers_need(
    builder, tmp_path
):
    page = tmp_path / "page.html"
    page.write_text(
        '<aside class="toc-drawer"><p class="caption" role="heading">Start</p></aside>'
        '<th class="head"><p></p></th><th class="head"><p>name</p></th>'
    )
    builder["make_accessible"](tmp_path)
    assert page.read_text() == (
        '<aside class="toc-drawer" aria-label="On this page">'
        '<p class="caption" role="heading" aria-level="2">Start</p></aside>'
        '<td></td><th class="head"><p>name</p></th>'
    )


def test_every_page_is_reachable_from_the_landing_page(source):
    pages = {path for suffix in ("md", "rst") for path in source.rglob(f"*.{suffix}")}
    reached, new = set(), {source / "index.md"}
    while new:
        reached |= new
        new = {child for page in new for child in listed(page)} - reached
    assert {path.relative_to(source).as_posix() for path in pages - reached} == set()


def test_settings_of_the_site_can_be_read_without_sphinx(source):
    settings = runpy.run_path(str(source / "conf.py"))
    assert settings["release"] == steelyard.__version__
    own = [name for name in settings["extensions"] if "." not in name]
    assert "myst_parser" in own
    assert (source / "_ext/mathml.py").is_file()


def test_every_method_has_a_page_that_says_what_it_is_and_when_to_use_it(source):
    for entry in steelyard.methods():
        page = (source / f"method/{entry.acronym}.md").read_text(encoding="utf-8")
        for part in (entry.paper, entry.learns, entry.estimator.__name__):
            assert part in page
        headings = re.findall(r"^## (.*)", page, re.M)
        expected = ["When to use it", "What it computes", "Settings", "The class"]
        assert headings == expected


def test_a_method_without_a_row_or_a_section_is_an_error_that_names_it(builder):
    entry = steelyard.methods()[0]
    text = "| method | use it |\n| --- | --- |\n\n## Another\n"
    for look in (builder["when_to_use"], builder["section_of"]):
        with pytest.raises(LookupError, match=entry.acronym):
            look(entry, text)


def test_links_of_a_section_lead_from_the_page_of_a_method(source):
    for page in (source / "method").glob("*.md"):
        links = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
        assert [
            x for x in links if "://" not in x and not (page.parent / x).exists()
        ] == []


def test_every_public_name_has_a_page(source):
    names = {path.stem for path in (source / "reference").glob("*.rst")}
    assert set(homes()) <= names


def test_methods_of_scikit_learn_are_left_to_its_own_documentation(builder):
    page = builder["reference_page"]("NaiveBayes")
    assert "partial_fit" in page
    assert "set_fit_request" not in page


def test_every_example_has_a_page_with_its_code(source):
    for path in (ROOT / "examples").glob("*.py"):
        page = (source / f"gallery/{path.stem}.md").read_text(encoding="utf-8")
        assert f"../../examples/{path.name}" in page
        assert (f"images/{path.stem}.svg" in page) == path.stem.startswith("plot_")


def test_the_gallery_has_fifteen_pictures_and_every_example_under_a_question(source):
    text = (source / "gallery/index.md").read_text(encoding="utf-8")
    assert text.count("{figure}") >= 15
    for path in (ROOT / "examples").glob("*.py"):
        assert text.count(f"]({path.stem}.md)") == 1
    for names in runpy.run_path(str(ROOT / "tools/docsite/gallery.py"))[
        "TOPICS"
    ].values():
        for name in names.split():
            assert list((ROOT / "examples").glob(f"*{name}.py")), name


def test_reproduction_begins_with_what_was_reached_and_what_was_not(source):
    text = (source / "reproduction.md").read_text(encoding="utf-8")
    top = text.partition("<!-- begin summary -->")[2].partition("## Protocol")[0]
    row = re.search(r"^\| RNB paper \(.*\) \| (\d+) of (\d+) \| (.*) \|$", top, re.M)
    assert int(row[1]) > 400 < int(row[2]) and "average of RNB" in row[3]
    assert len(re.findall(r"^\| .* (?:paper|manual) ?\(`steelyard", top, re.M)) == 4


def test_the_list_of_methods_has_every_method_by_family(source):
    text = (source / "method/index.md").read_text(encoding="utf-8")
    for entry in steelyard.methods():
        assert f"## {entry.family.capitalize()}" in text
        assert f"[{entry.acronym}]({entry.acronym}.md)" in text


def test_every_setting_is_in_the_reference_with_its_meaning(source):
    text = (source / "api.md").read_text(encoding="utf-8")
    assert "<!-- table" not in text
    for name in classes():
        for setting, entry in getattr(steelyard, name)._settings.items():
            assert f"| `{setting}` |" in text
            assert entry.about, f"{name}.{setting} says nothing of itself"


def test_the_page_of_the_model_file_names_every_class_and_part(source):
    text = (source / "model_file.md").read_text(encoding="utf-8")
    for name in [*classes(), *PARTS, *ATTRIBUTES, *MODELS]:
        assert f"`{name}`" in text or f"`{name}." in text or f'`"{name}"`' in text


def test_the_user_guide_is_split_by_headings_and_links_follow(source):
    guide = (source / "user_guide.md").read_text(encoding="utf-8")
    assert "[Missing values](user_guide/missing-values.md)" in guide
    part = (source / "user_guide/missing-values.md").read_text(encoding="utf-8")
    assert part.startswith("# Missing values\n")
    part = (source / "user_guide/the-default-shrinkagenb.md").read_text("utf-8")
    assert "{doc}`/gallery/plot_monotone`" in part
    page = (source / "guide_spss_weka.md").read_text(encoding="utf-8")
    assert "](user_guide/learning-in-chunks.md#learning-in-chunks)" in page
    for path in [*source.glob("*.md"), *source.glob("*/*.md")]:
        text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)#\s]+)", text):
            made = "://" in link or link.startswith("images/plot_")
            assert made or (path.parent / link).exists(), f"{path.name}: {link}"


def test_names_of_the_reference_are_links(source):
    text = (source / "api.md").read_text(encoding="utf-8")
    for name in homes():
        assert f"{{py:obj}}`{name} <steelyard.{name}>`" in text


@pytest.mark.parametrize("word", CHECKS["SOUGHT"])
def test_pages_have_the_words_that_people_search_for(source, word):
    pages = [*source.glob("*.md"), *source.glob("[cgu]*/*.md")]
    assert any(
        re.search(rf"\b{word}", page.read_text("utf-8"), re.IGNORECASE)
        for page in pages
        if page.stem not in ("changelog", "design")
    )


def test_broken_links_and_lost_anchors_of_a_built_site_are_found(tmp_path):
    (tmp_path / "sub").mkdir()
    good = '<a href="sub/b.html#here">b</a><a href="https://x.invalid/">x</a>'
    bad = '<a href="c.html"></a><a href="sub/b.html#gone"></a><img src="d.svg">'
    (tmp_path / "a.html").write_text(good + bad, encoding="utf-8")
    page = '<p id="here"><a href="../a.html">a</a><a href="#here">up</a>'
    (tmp_path / "sub/b.html").write_text(page, encoding="utf-8")
    found = CHECKS["broken_links"](tmp_path)
    assert found == ["a.html: c.html", "a.html: d.svg", "a.html: sub/b.html#gone"]


def test_search_index_is_asked_by_the_stems_of_words(tmp_path):
    pytest.importorskip("sphinx")
    index = 'Search.setIndex({"terms":{"leakag":[1],"imbal":2},"titles":{}})'
    (tmp_path / "searchindex.js").write_text(index, encoding="utf-8")
    lost = CHECKS["not_found"](tmp_path)
    assert "leakage" not in lost and "imbalance" not in lost and "SQL" in lost


def test_versions_are_joined_by_a_list_that_works_from_files(tmp_path):
    tool = runpy.run_path(str(ROOT / "tools/docsite/versions.py"))
    for name in ("dev", "0.1"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub/a.html").write_text("<body></body>", "utf-8")
    names = sorted(["0.1", "dev", "0.10", "0.2"], key=tool["_order"])
    assert names == ["dev", "0.10", "0.2", "0.1"]
    for _ in range(2):
        tool["join_versions"](tmp_path, ["dev", "0.1"])
    page = (tmp_path / "dev/sub/a.html").read_text(encoding="utf-8")
    assert page.count('<script src="../../versions.js"></script></body>') == 1
    assert '"0.1": ["sub/a.html"]' in (tmp_path / "versions.js").read_text("utf-8")
    assert "dev/index.html" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "0.1" in tool["releases"](ROOT)


def test_the_report_of_the_default_has_its_tables_formulas_and_pictures(source):
    page = (source / "report_default.md").read_text(encoding="utf-8")
    assert "<!-- part" not in page
    assert page.count("| --- |") >= 8
    pytest.importorskip("markdown_it")
    pytest.importorskip("latex2mathml")
    html = runpy.run_path(str(ROOT / "tools/report_default.py"))["to_html"](page)
    assert html.count("<table") >= 8 and html.count("<math") > 10
    assert "data:image/svg+xml;base64," in html and "$" not in html.split("<style>")[0]


def test_a_part_of_a_page_that_does_not_exist_is_an_error_that_names_it(builder):
    with pytest.raises(LookupError, match=r"api\.md has no 'nothing like it'"):
        builder["with_parts"]("<!-- part: api.md :: nothing like it -->", ROOT / "docs")


def test_commands_of_the_tutorial_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    exec(re.sub(r"^(>>>|\.\.\.) ?", "", blocks(text, "python")[0], flags=re.M), {})
    commands = blocks(text, "sh")[0].splitlines()
    assert len(commands) == 5
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "steelyard"
        assert main(arguments) == 0, capsys.readouterr().err
    predictions = (tmp_path / "predictions.csv").read_text(encoding="utf-8")
    assert len(predictions.splitlines()) == 901
    assert (tmp_path / "patients.html").is_file()
