"""From a recipe and a training set to a problem, and from there to a fit."""
