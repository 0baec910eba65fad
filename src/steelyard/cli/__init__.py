"""The command line: parses, calls a public function, prints what it returns."""

from steelyard.cli.program import main

__all__ = ["main"]
