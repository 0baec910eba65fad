"""Run the command line as ``python -m steelyard``."""

import sys

from steelyard.cli.run import main

sys.exit(main())
