"""Models outside of Python: a plan of plain terms, and writers of it, by format.

Names are loaded when they are first used: a scorer in a service needs the standard
library alone.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.export.formats import *  # noqa: F403
    from steelyard.export.json_schema import *  # noqa: F403
    from steelyard.export.onnx import *  # noqa: F403
    from steelyard.export.plan import *  # noqa: F403
    from steelyard.export.pmml import *  # noqa: F403
    from steelyard.export.reading import *  # noqa: F403
    from steelyard.export.scorer import *  # noqa: F403
    from steelyard.export.source import *  # noqa: F403
    from steelyard.export.sql import *  # noqa: F403
    from steelyard.export.sql_dialect import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.export",
    formats="FORMATS write",
    json_schema="row_schema",
    onnx="to_onnx",
    plan="Plan",
    pmml="to_pmml",
    reading="plan_of scorer_of",
    scorer="Scorer",
    source="to_javascript to_python",
    sql="SQLOptions to_sql",
    sql_dialect="DIALECTS",
)
