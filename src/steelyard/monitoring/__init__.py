"""Rows over time beside those of training: drift by column and period, and its page."""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.monitoring.drift import *  # noqa: F403
    from steelyard.monitoring.result import *  # noqa: F403
    from steelyard.monitoring.sql import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.monitoring",
    drift="DriftMonitor drift_of",
    result="ColumnDrift Drift Period",
    sql="drift_sql",
)
