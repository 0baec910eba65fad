"""Experiments: methods compared on data sets, and what is made of the results.

- ``runner`` has `compare`, which makes classifiers and tables of its arguments, with
  the ``baselines`` of others; ``protocols`` says how data are prepared.
- ``work`` is one task, some fits to one fold; ``processes`` runs tasks side by side and
  shows how far they are; ``journal`` keeps a row per fit in a file that a later run
  resumes.
- ``results`` is what comes out. ``statistics`` tests it, ``report`` writes it and
  ``displays`` draws it.
- ``data`` reads data sets. ``reproduction``, beside the package, repeats published
  experiments.
"""
