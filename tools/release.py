"""The checklist of a release: ``python tools/release.py`` stops at the first fault.

It changes nothing outside ``build/`` and ``dist/``, and publishes nothing. At the end
it prints what is left to a person.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Tests that are run from the unpacked sdist: the quick ones of all that ships data.
FROM_SDIST = ("tests/table", "tests/displays", "tests/persistence")

# Links that a package index shows beside a release.
URLS = ("Documentation", "Source", "Issues", "Changelog")


class ReleaseError(Exception):
    """What keeps a release back."""


def read(name: str) -> str:
    """Return the text of a file of the repository."""
    return (ROOT / name).read_text("utf-8")


def version() -> str:
    """Return the version, which is written once, in the package."""
    (text,) = re.findall(
        r'^__version__ = "(.*)"$', read("src/steelyard/__init__.py"), re.M
    )
    return str(text)


def run(*command: str) -> str:
    """Run a command, and return what it prints."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(
            f"{' '.join(command)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return done.stdout.strip()


def nothing_uncommitted() -> None:
    """Ask that all changes are committed."""
    if changed := run("git", "status", "--porcelain"):
        raise ReleaseError(f"Commit or remove first:\n{changed}")


def a_new_number() -> None:
    """Ask for the version of a release, without a tag yet."""
    number = version()
    if not re.fullmatch(r"\d+\.\d+\.\d+", number):
        raise ReleaseError(f"{number} is not of the form 1.2.3.")
    if run("git", "tag", "--list", f"v{number}"):
        raise ReleaseError(f"There is a tag v{number} already.")


def the_same_number() -> None:
    """Ask that citation and recipe name the version."""
    for name, form in (
        ("CITATION.cff", r"^version: (\S+)$"),
        ("recipe/recipe.yaml", r'^  version: "(\S+)"$'),
    ):
        matches = re.findall(form, read(name), re.M)
        if matches != [version()]:
            raise ReleaseError(
                f"{name} has version {matches}, the package {version()}."
            )


def a_changelog() -> None:
    """Ask for a dated section of the changelog, below an empty one."""
    parts = re.split(r"^## ", read("CHANGELOG.md"), flags=re.M)[1:]
    if not re.match(rf"\[{re.escape(version())}\] - \d{{4}}-\d\d-\d\d\n", parts[1]):
        raise ReleaseError(
            f"CHANGELOG.md: expected '## [{version()}] - date' below Unreleased."
        )
    if len(parts[0].split()) > 1:
        raise ReleaseError("CHANGELOG.md: something is left under Unreleased.")


def addresses() -> None:
    """Ask for addresses that a package index can show."""
    urls = tomllib.loads(read("pyproject.toml"))["project"].get("urls", {})
    if missing := [name for name in URLS if name not in urls]:
        raise ReleaseError(
            f"pyproject.toml: [project.urls] lacks {', '.join(missing)}. "
            "A comment there marks the place. Package indexes show these links."
        )


def no_old_deprecations() -> None:
    """Ask that whatever was to go in this version is gone."""
    now = tuple(map(int, version().split(".")))
    for path in sorted((ROOT / "src").rglob("*.py")):
        for last in re.findall(r"removed in (\d+\.\d+)", path.read_text("utf-8")):
            if tuple(map(int, last.split("."))) <= now:
                raise ReleaseError(
                    f"{path.relative_to(ROOT)} was to be removed in {last}."
                )


def checks_and_tests() -> None:
    """Run all tests."""
    run("make", "test-all")


def lowest_versions() -> None:
    """Run all tests with the lowest versions of what is needed."""
    run("make", "test-oldest")


def documentation() -> None:
    """Build the site without a warning."""
    run("make", "docs")


def wheel_and_sdist() -> None:
    """Build wheel and sdist, try both, and run tests from the sdist."""
    run("make", "dist")
    run(".venv/bin/python", "tools/check_dist.py", "dist", *FROM_SDIST)


def bill_of_materials() -> None:
    """Write the bill of materials."""
    (ROOT / "build").mkdir(exist_ok=True)
    run(".venv/bin/python", "tools/sbom.py", "build/sbom.spdx.json")


# From what takes no time to what takes hours.
STEPS: tuple[Callable[[], None], ...] = (
    nothing_uncommitted,
    a_new_number,
    the_same_number,
    a_changelog,
    addresses,
    no_old_deprecations,
    documentation,
    wheel_and_sdist,
    bill_of_materials,
    checks_and_tests,
    lowest_versions,
)


def main() -> int:
    """Take all steps, or stop at the first fault."""
    for number, step in enumerate(STEPS, 1):
        print(f"{number:2} of {len(STEPS)}  {step.__doc__}", flush=True)
        try:
            step()
        except ReleaseError as fault:
            print(f"\nStopped. {fault}")
            return 1
    tag = f"v{version()}"
    print(
        f"\nReady. Left to you: `git tag -s {tag}`, push the tag, approve the upload "
        "in the workflow Publish, and attach build/sbom.spdx.json to the release."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
