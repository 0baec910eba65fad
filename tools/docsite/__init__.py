"""What ``tools/build_docs.py`` makes beside the pages that are written by hand."""
