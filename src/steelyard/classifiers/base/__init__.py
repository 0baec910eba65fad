"""What every classifier shares: one way to fit.

Some share more: ``chunked`` learns from rows that come in chunks, ``selection`` makes a
transformer of what selects columns, ``prior`` gives a fitted one other priors.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.classifiers.base",
    estimator="BaseNB DEVICE_SETTING StandardNB",
)
