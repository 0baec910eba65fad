"""Data sets by name or by file: a folder, scikit-learn's own, OpenML, and tasks."""

from typing import TYPE_CHECKING

from steelyard._common import names_of
from steelyard.io.dataset import DataSet, read_dataset

if TYPE_CHECKING:
    from steelyard.lab.data.datasets import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.lab.data",
    datasets="BUNDLED data_folder dataset_group load_dataset",
)
__all__ += ["DataSet", "read_dataset"]
