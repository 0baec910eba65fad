"""Why a model says what it says: contributions, value tables, intervals, a web page.

Names are loaded when they are first used: intervals of weights need much that value
tables do not.
"""

from typing import TYPE_CHECKING

from steelyard._common.later import names_of

if TYPE_CHECKING:
    from steelyard.explain.counterfactual import Change, Counterfactual
    from steelyard.explain.intervals import (
        EvidenceIntervals,
        WeightIntervals,
        explain_weights,
    )
    from steelyard.explain.local import LocalExplanation, explain_local
    from steelyard.explain.overall import GlobalExplanation, explain_global
    from steelyard.explain.page import to_html
    from steelyard.explain.reasons import column_importance
    from steelyard.explain.value_tables import AttributeTable
    from steelyard.explain.views import Evidence, EvidenceItem


__all__ = [
    "AttributeTable",
    "Change",
    "Counterfactual",
    "Evidence",
    "EvidenceIntervals",
    "EvidenceItem",
    "GlobalExplanation",
    "LocalExplanation",
    "WeightIntervals",
    "column_importance",
    "explain_global",
    "explain_local",
    "explain_weights",
    "to_html",
]

__getattr__ = names_of(
    "steelyard.explain",
    counterfactual="Change Counterfactual",
    intervals="EvidenceIntervals WeightIntervals explain_weights",
    local="LocalExplanation explain_local",
    overall="GlobalExplanation explain_global",
    page="to_html",
    reasons="column_importance",
    value_tables="AttributeTable",
    views="Evidence EvidenceItem",
)
