"""``steelyard schema``: what a row of a model may be."""

from __future__ import annotations

import argparse
import json

from steelyard.cli import options
from steelyard.cli.inputs import load_model

ABOUT = "print the JSON Schema of a row of a model"
EXAMPLES = """
steelyard schema model.json
steelyard schema model.json > row.schema.json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("model", help=options.MODEL)


def run(arguments: argparse.Namespace) -> None:
    """Print the schema."""
    from steelyard.export import row_schema

    print(json.dumps(row_schema(load_model(arguments.model)), indent=2))
