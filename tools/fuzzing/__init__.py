"""What ``tools/fuzz.py`` attacks with: a module for each kind of case."""
