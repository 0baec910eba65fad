"""The repository keeps its own promises."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import steelyard
from steelyard.classifiers.registry import homes

ROOT = Path(__file__).resolve().parents[1]

# Absolute paths of somebody's machine, and addresses or settings of package indexes.
FORBIDDEN = re.compile(
    r"(?<![\w.~/:-])/(?:home|root|Users|work|opt|mnt)/\w"
    r"|pypi\.org|pythonhosted\.org|index[-_]url|find[-_]links",
    re.IGNORECASE,
)


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def section(text, heading):
    """Return the lines under a second-level heading of a Markdown page."""
    parts = re.split(r"^## +", text, flags=re.MULTILINE)
    found = [part for part in parts if part.splitlines()[:1] == [heading]]
    assert len(found) == 1, f"expected one section {heading!r}, found {len(found)}"
    return found[0].splitlines()[1:]


def repository_files():
    """Return the files that git tracks or would add."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there is no list of files to look through")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
    paths = {ROOT / name for name in listed.decode().split("\0") if name}
    return sorted(path for path in paths if path.is_file())


def test_contributing_ends_with_files_that_exist():
    text = read("CONTRIBUTING.md")
    lines = [line for line in section(text, "Where to start reading") if line.strip()]
    listed = [re.match(r"- `([^`]+)`: \S", line) for line in lines[1:]]
    assert all(listed), "each line reads: - `path`: what it is"
    assert len(listed) >= 5
    missing = [found[1] for found in listed if not (ROOT / found[1]).is_file()]
    assert missing == []
    assert text.rstrip().endswith(lines[-1])


def test_contributing_lists_every_folder_of_the_library():
    listed = "\n".join(section(read("CONTRIBUTING.md"), "Where to start reading"))
    for init in (ROOT / "src/steelyard").rglob("*/__init__.py"):
        folder = init.parent.relative_to(ROOT)
        line = re.escape(f"- `{folder.as_posix()}/__init__.py`: ")
        # A folder within a folder may be named in the line of the one around it.
        around = re.escape(f"- `{folder.parent.as_posix()}/__init__.py`: ")
        named = rf"^(?:{line}|{around}.*`{folder.name}/`)"
        assert re.search(named, listed, re.M), folder


def test_readme_names_both_commands_and_its_links_exist():
    text = read("README.md")
    assert "make demo" in text
    assert "make test" in text
    links = re.findall(r"\]\(([^)#]+)", text)
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (ROOT / link).exists()] == []


@pytest.mark.plain
def test_readme_example_runs(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", read("README.md"), flags=re.DOTALL)
    assert len(code.strip().splitlines()) <= 12
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_public_names_are_sorted_and_importable():
    assert steelyard.__all__ == sorted(steelyard.__all__)
    assert set(steelyard.__all__) <= {*homes(), "__version__"}
    assert all(hasattr(steelyard, name) for name in homes())


def test_changelog_has_an_unreleased_section():
    assert any(section(read("CHANGELOG.md"), "[Unreleased]"))


def test_continuous_integration_runs_both_tiers_of_tests_and_nothing_else():
    lines = read(".ci/run").splitlines()
    setup = ("#", "set ", "cd ")
    commands = [line for line in lines if line and not line.startswith(setup)]
    assert commands == ["make test test-all"]


def test_no_file_mentions_a_machine_or_a_package_index():
    found = []
    for path in repository_files():
        if path == Path(__file__).resolve():
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
            for number, line in enumerate(lines, 1)
            if FORBIDDEN.search(line)
        ]
    assert found == []
