"""The weather table of the textbooks, with names."""

import numpy as np
import pandas as pd
import pytest

ROWS = "shhF shhT ohhF rmhF rcnF rcnT ocnT smhF scnF rmnF smnT omhT ohnF rmhT".split()
NAMES = ["outlook", "temperature", "humidity", "windy"]


@pytest.fixture
def weather():
    """Return the table, named, and its labels."""
    table = pd.DataFrame([list(row) for row in ROWS], columns=NAMES)
    return table, np.array(list("nnyyynynyyyyyn"))
