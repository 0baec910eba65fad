"""Explanations of models: contributions, value tables, counterfactuals, a web page."""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.explain.counterfactual import *  # noqa: F403
    from steelyard.explain.evidence import *  # noqa: F403
    from steelyard.explain.local import *  # noqa: F403
    from steelyard.explain.overall import *  # noqa: F403
    from steelyard.explain.page import *  # noqa: F403
    from steelyard.explain.value_tables import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.explain",
    counterfactual="Change Counterfactual",
    local="LocalExplanation explain_local",
    evidence="Evidence EvidenceItem",
    overall="GlobalExplanation column_importance explain_global",
    page="Page page_text",
    value_tables="AttributeTable",
)
