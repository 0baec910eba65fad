"""Data sets by name or file, with labels."""

from steelyard.experiments.data.dataset import DataSet, read_dataset
from steelyard.experiments.data.sets import (
    BUNDLED,
    data_folder,
    dataset_group,
    load_dataset,
)
from steelyard.io.arff import read_arff

__all__ = [
    "BUNDLED",
    "DataSet",
    "data_folder",
    "dataset_group",
    "load_dataset",
    "read_arff",
    "read_dataset",
]
