"""Experiments: methods compared on data sets, and what is made of the results.

- ``runner`` has `compare`, which makes classifiers and tables of its arguments, with
  the ``baselines`` of others, and shows how far it is; ``protocols`` says how data are
  prepared.
- ``work`` has tasks, some fits to one fold, which run side by side; ``journal`` keeps a
  row per fit in a file that a later run resumes.
- ``results`` is what comes out. ``statistics`` tests it, ``report`` writes it and
  ``displays`` draws it.
- ``evaluate`` measures a method or a model, by group and by costs too; ``drift``
  compares new rows with what a model holds of those of training.
- ``data`` reads data sets. ``reproduction``, beside the package, repeats published
  experiments.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.experiments.drift import *  # noqa: F403
    from steelyard.experiments.drift_result import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.experiments", drift="DriftWatch drift_of", drift_result="Drift"
)
