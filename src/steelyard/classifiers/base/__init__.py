"""What classifiers share: one way to fit, and what follows from a fitted model.

``classifier`` has the fit. Some share more: ``chunked`` learns from rows that come in
chunks, ``selection`` makes a transformer of what selects columns.
"""

from steelyard.classifiers.base.classifier import DEVICE_SETTING, BaseNB, StandardNB

__all__ = ["DEVICE_SETTING", "BaseNB", "StandardNB"]
