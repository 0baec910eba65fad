"""``steelyard datasets``: lists the data sets of the papers, and fetches them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from steelyard.cli import options, output

ABOUT = "list the data sets of the papers, and fetch those that are missing"
EXAMPLES = """
steelyard datasets
steelyard datasets rnb --fetch
steelyard datasets iris glass --fetch --data datasets
"""

_GROUPS = {"rnb": "rnb33", "cwnb": "cwnb60", "exponential": "exp28"}
"""Groups of data sets by the papers of ``steelyard reproduce``."""

_ARCHIVES = {"github": "GitHub", "https": "UCI's archive", "openml": "OpenML"}
"""Archives by the first word of a source."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    about = "data sets, groups such as rnb33, or papers: rnb, cwnb, exponential"
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{about} (all)")
    about = "folder of data sets (default: environment STEELYARD_DATA, else a cache)"
    parser.add_argument("--data", metavar="DIR", help=about)
    about = "fetch what is missing from public archives into the folder"
    parser.add_argument("--fetch", action="store_true", help=about)
    options.add_shared(parser, "json")


def run(arguments: argparse.Namespace) -> int:
    """Print the table of data sets, after fetching those that are missing."""
    from steelyard.lab.data.datasets import cache_folder, source_of

    entries = _chosen(arguments.names)
    folder = arguments.data or os.environ.get("STEELYARD_DATA") or cache_folder()
    failed = _fetch_missing(entries, Path(folder)) if arguments.fetch else 0
    header = "name instances attributes classes papers state source".split()
    rows = [{**e, "state": source_of(e["name"], arguments.data)} for e in entries]
    if arguments.json:
        output.print_json([{key: row[key] for key in header} for row in rows])
        return 2 if failed else 0
    output.print_table(
        "Data sets", header[:-1], [[r[k] for k in header[:-1]] for r in rows]
    )
    missing = [row for row in rows if row["state"] == "missing"]
    print(f"{len(missing)} of {len(rows)} are missing in {str(folder)!r}.")
    n_known = sum(row["source"] != "" for row in missing)
    if n_known and not arguments.fetch:
        print(f"'--fetch' gets {n_known} of them from public archives.")
    return 2 if failed else 0


def _chosen(names: list[str]) -> list[Mapping[str, str]]:
    """Return the rows of the catalogue that are named."""
    from steelyard._common.text import did_you_mean
    from steelyard.lab.data.datasets import catalogue

    def words(row: Mapping[str, str]) -> set[str]:
        return {row["name"], *row["papers"].split("|")}

    wanted = {_GROUPS.get(name, name) for name in names}
    names_and_groups = {word for row in catalogue() for word in words(row)}
    for name in sorted(wanted - names_and_groups):
        hint = did_you_mean(name, [*names_and_groups, *_GROUPS])
        raise ValueError(
            f"There is no data set, group or paper {name!r}.{hint} Papers: "
            f"{', '.join(_GROUPS)}; 'steelyard datasets' lists all data sets."
        )
    return [row for row in catalogue() if not names or wanted & words(row)]


def _fetch_missing(entries: list[Mapping[str, str]], folder: Path) -> int:
    """Fetch what is missing; return how many could not be had."""
    from steelyard.lab.data.archives import fetch_dataset
    from steelyard.lab.data.datasets import source_of

    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    unreachable: dict[str, list[str]] = {}
    for entry in entries:
        name, source = entry["name"], entry["source"]
        if source_of(name, folder) == "folder" or source.startswith("sklearn:"):
            continue
        archive = _ARCHIVES.get(source.partition(":")[0], source)
        if archive in unreachable:
            unreachable[archive].append(name)
            continue
        end = f"no source is known: put {name}.arff into {str(folder)!r}"
        try:
            if source:
                same = fetch_dataset(entry, folder, progress=_show_progress(name))
                end = "fetched, cell by cell as in the documentation"
                if not same:
                    end = "fetched; it is another copy than that of the documentation"
        except (OSError, ValueError) as error:
            failed += 1
            end = str(error)
            if isinstance(error, ConnectionError):
                unreachable[archive] = []
        print(f"{name}: {end.rstrip('.')}.", file=sys.stderr)
    for archive, names in unreachable.items():
        rest = f" Not tried: {', '.join(names)}." if names else ""
        print(
            f"{archive} cannot be reached.{rest} Repeat the command when there is a "
            f"network, or put ARFF files into {str(folder)!r}.",
            file=sys.stderr,
        )
    return failed + sum(map(len, unreachable.values()))


def _show_progress(name: str) -> Callable[[int, int | None], None] | None:
    """Return what shows on a terminal how many bytes of a file have come."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int | None) -> None:
        of = "" if total is None else f" of {total / 1e6:.1f}"
        print(f"\r{name}: {done / 1e6:.1f}{of} MB ", end="\r", file=sys.stderr)

    return show
