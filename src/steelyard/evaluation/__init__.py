"""Measures of a fitted classifier on labelled rows, by group and cost too."""
