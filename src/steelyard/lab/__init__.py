"""The lab: methods compared on data sets, and what is made of the results.

- ``runner`` has `compare`, which makes classifiers and tables of its arguments, with
  the ``baselines`` of others; ``protocols`` says how data are prepared.
- ``worker`` runs the fits, in several processes; ``journal`` keeps a row for each fit
  in a file that a later run resumes.
- ``results`` is what comes out. ``statistics`` tests it, ``report`` writes it and
  ``displays`` draws it. ``data`` has data sets by name.

Nothing but its commands imports it. ``reproduction``, beside the package, repeats
published experiments with it.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.lab.results import Results as Results
    from steelyard.lab.runner import compare as compare

__getattr__, __all__ = names_of("steelyard.lab", results="Results", runner="compare")
