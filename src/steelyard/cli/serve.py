"""``steelyard serve``: a model as a web service."""

from __future__ import annotations

import argparse
import sys

from steelyard.cli import options
from steelyard.cli.inputs import load_model

ABOUT = "serve predictions over HTTP: labels, probabilities, reasons, intervals"
EXAMPLES = """
steelyard serve model.json
steelyard serve model.json --host 0.0.0.0 --port 8080
"""

# Seconds that requests have to end after a signal to stop.
_GRACE = 30


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add("model", help=options.MODEL)
    about = "address to listen on (default: 127.0.0.1, this machine only)"
    add("--host", default="127.0.0.1", metavar="NAME", help=about)
    add("--port", type=int, default=8000, metavar="N", help="port (default: 8000)")
    about = "largest number of rows in a request (default: 1000)"
    add("--max-rows", type=int, default=1_000, metavar="N", help=about)


def run(arguments: argparse.Namespace) -> None:
    """Serve until a signal to stop, and answer what was asked before it."""
    import uvicorn

    from steelyard.service import create_app

    app = create_app(load_model(arguments.model), max_rows=arguments.max_rows)
    host, port = arguments.host, arguments.port
    line = f"steelyard: serving {arguments.model} at http://{host}:{port}, until Ctrl-C"
    print(line, file=sys.stderr, flush=True)
    uvicorn.run(
        app,
        host=host,
        port=port,
        log_level="warning",
        timeout_graceful_shutdown=_GRACE,
    )
