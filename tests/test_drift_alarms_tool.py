"""The tool that counts alarms of drift finds made shifts, and next to none without."""

import runpy
from pathlib import Path

TOOL = Path(__file__).resolve().parents[1] / "studies" / "drift_alarms.py"


def test_made_shifts_raise_alarms_and_resampled_rows_do_not():
    found = runpy.run_path(str(TOOL))["counted_alarms"](2)
    for name, alarms in found.items():
        assert alarms == (0 if name.startswith("nothing") else 2), name
