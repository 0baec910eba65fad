"""The documentation site is whole; ``make docs`` builds it, which takes a minute."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

import steelyard
from steelyard.classifiers.registry import classes, homes
from steelyard.cli import main
from steelyard.persistence.content import PARTS
from steelyard.persistence.fitted import ATTRIBUTES
from steelyard.persistence.models import MODELS

ROOT = Path(__file__).resolve().parents[1]


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
    text = "| method | take it |\n| --- | --- |\n\n## Another\n"
    for look in (builder["when_to_use"], builder["section"]):
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


def test_commands_of_the_tutorial_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("rich")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    exec(re.sub(r"^(>>>|\.\.\.) ?", "", blocks(text, "python")[0], flags=re.M), {})
    commands = blocks(text, "sh")[0].splitlines()
    assert len(commands) == 4
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "steelyard"
        assert main(arguments) == 0, capsys.readouterr().err
    predictions = (tmp_path / "predictions.csv").read_text(encoding="utf-8")
    assert len(predictions.splitlines()) == 179
    assert (tmp_path / "wine.html").is_file()
