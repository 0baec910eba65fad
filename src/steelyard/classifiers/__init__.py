"""The classifiers, as users know them, and the registry of methods."""
