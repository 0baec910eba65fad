"""Data sets by name or file, and the one way from a file to a table."""

from steelyard.experiments.data.arff import read_arff
from steelyard.experiments.data.dataset import DataSet, read_dataset
from steelyard.experiments.data.files import read_chunks, read_table
from steelyard.experiments.data.sets import (
    BUNDLED,
    data_folder,
    dataset_group,
    load_dataset,
)
from steelyard.experiments.data.source import Source

__all__ = [
    "BUNDLED",
    "DataSet",
    "Source",
    "data_folder",
    "dataset_group",
    "load_dataset",
    "read_arff",
    "read_chunks",
    "read_dataset",
    "read_table",
]
