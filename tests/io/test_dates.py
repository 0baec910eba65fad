"""In which order day and month stand, by the numbers of a column."""

import pytest

from steelyard.io.dates import DateTally


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        (["13/01/2024", "01/02/2024"], "dmy"),
        (["01/13/2024", "01/02/2024"], "mdy"),
        (["12/12/2024", "01/02/2024"], "mdy"),
        (["12.12.2024", "01.02.2024"], "dmy"),
        (["13/01/2024", "01/13/2024"], None),
        (["2024-12-13"], "ymd"),
    ],
)
def test_a_number_over_twelve_is_a_day(texts, order):
    tally = DateTally()
    tally.add(dict.fromkeys(texts, 1), lambda text: False)
    assert tally.order("") == order
