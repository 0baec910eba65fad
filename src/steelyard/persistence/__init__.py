"""Models as files: one JSON document, checked in full before anything is built."""

from steelyard.persistence.files import load, save

__all__ = ["load", "save"]
