"""Each bad input has an error of its own that says what, where and what to try."""

import datetime
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from steelyard import NaiveBayes, TableEncoder
from steelyard.exceptions import ColumnError, ParameterError, TableError
from steelyard.table.discretizers.unsupervised import (
    EqualWidthDiscretizer,
    FixedEdgesDiscretizer,
)

NAN, INF = float("nan"), float("inf")
FRAME = pd.DataFrame(
    {
        "sky": ["sun", "rain", "sun", "fog"],
        "heat": [30.0, 12.0, 25.0, 8.0],
        "flag": [True, False, True, False],
    }
)
Y = ["out", "in", "out", "in"]

TO_FRAME = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
libraries = pytest.mark.parametrize("library", TO_FRAME)


@pytest.fixture(scope="module")
def clf():
    return NaiveBayes().fit(FRAME, Y)


def table_of(library, cells=FRAME):
    return TO_FRAME[library]({name: list(cells[name]) for name in cells})


# ---------------------------------------------------------------------- columns changed


@libraries
def test_a_missing_column_is_named(clf, library):
    with pytest.raises(ColumnError, match=r"yet now missing:\n- heat\n$"):
        clf.predict(table_of(library, FRAME[["sky", "flag"]]))


@libraries
def test_an_extra_column_is_named(clf, library):
    with pytest.raises(ColumnError, match=r"unseen at fit time:\n- more\n$"):
        clf.predict(table_of(library, FRAME.assign(more=1)))


@libraries
def test_a_renamed_column_is_suspected(clf, library):
    with pytest.raises(ColumnError, match=r"Was 'heat' renamed to 'temperature'\?"):
        clf.predict(table_of(library, FRAME.rename(columns={"heat": "temperature"})))


def test_many_changed_columns_are_not_all_listed():
    wide = pd.DataFrame({f"c{k}": ["a", "b"] for k in range(9)})
    clf = NaiveBayes().fit(wide, [0, 1])
    with pytest.raises(ColumnError, match=r"- c4\n- \.\.\.\n") as caught:
        clf.predict(pd.DataFrame({"z": ["a"]}))
    assert "c5" not in str(caught.value)


def test_a_wrong_number_of_columns_without_names_is_counted():
    clf = NaiveBayes().fit(np.eye(3), [0, 1, 1])
    words = "X has 2 features, but TableEncoder is expecting 3 features"
    with pytest.raises(ColumnError, match=words):
        clf.predict(np.eye(2))


@libraries
def test_text_in_a_column_of_numbers_is_shown(clf, library):
    changed = FRAME.assign(heat=["hot", "cold", "hot", "cold"])
    words = "Column 'heat' was numeric .* now contains text \\('hot'\\). Encode it as"
    with pytest.raises(ColumnError, match=words):
        clf.predict(table_of(library, changed))
    with pytest.raises(ColumnError, match=words):
        NaiveBayes().partial_fit(FRAME, Y, ["in", "out"]).partial_fit(changed, Y)


@libraries
@pytest.mark.parametrize("cells", [[1, 2, 3, 4], [None, 2.5, 1.5, 1.0]], ids=str)
def test_numbers_in_a_column_of_text_are_shown(clf, library, cells):
    words = (
        "Column 'sky' contained text when .* now contains numbers .*Turn it into text"
    )
    with pytest.raises(ColumnError, match=words):
        clf.predict(table_of(library, FRAME.assign(sky=pd.Series(cells, dtype=object))))


def test_the_value_shown_is_the_first_known_one(clf):
    cells = pd.Series([None, 7, 8, 9], dtype="Int64")
    with pytest.raises(ColumnError, match=r"now contains numbers \(7\)"):
        clf.predict(FRAME.assign(sky=cells))


@libraries
def test_text_in_a_column_of_booleans_is_refused(clf, library):
    words = "Column 'flag' contained numbers or booleans .* now contains text"
    with pytest.raises(ColumnError, match=words):
        clf.predict(table_of(library, FRAME.assign(flag=["yes", "no", "no", "no"])))


def test_text_in_an_array_is_found_by_position():
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    clf = NaiveBayes().fit(X, [0, 1])
    with pytest.raises(ColumnError, match=r"Column 1 was numeric .* text"):
        clf.predict([[1.0, "two"]])


# --------------------------------------------------------------------- infinite numbers

INFINITE = {
    "array": np.array([[1.0], [INF], [2.0]]),
    "minus": np.array([[1.0], [-INF], [2.0]]),
    "float32": np.array([[1.0], [INF], [2.0]], dtype=np.float32),
    "objects": np.array([[1.0], [INF], [2.0]], dtype=object),
    "pandas": pd.DataFrame({"x": [1.0, INF, 2.0]}),
    "nullable": pd.DataFrame({"x": pd.Series([1.0, INF, 2.0], dtype="Float64")}),
    "arrow dtype": pd.DataFrame({"x": pd.array([1.0, INF, 2.0], "double[pyarrow]")}),
    "category": pd.DataFrame({"x": pd.Categorical([1.0, INF, 2.0])}),
    "polars": pl.DataFrame({"x": [1.0, INF, 2.0]}),
    "pyarrow": pa.table({"x": [1.0, INF, 2.0]}),
    "dictionary": pa.table({"x": pa.array([1.0, INF, 2.0]).dictionary_encode()}),
}


@pytest.mark.parametrize("name", INFINITE)
@pytest.mark.parametrize("setting", ["auto", "all"])
def test_an_infinite_number_is_found_with_its_row(name, setting):
    words = r"Column (0|'x') holds an infinite number \(inf\) in row 1.*NaN"
    with pytest.raises(ColumnError, match=words):
        NaiveBayes(categorical_features=setting).fit(INFINITE[name], [0, 1, 1])
    with pytest.raises(ColumnError, match=words):
        NaiveBayes(categorical_features=setting, numeric="gaussian").fit(
            INFINITE[name], [0, 1, 1]
        )


@libraries
def test_an_infinite_number_at_prediction_is_found(clf, library):
    with pytest.raises(ColumnError, match=r"'heat' holds an infinite .* row 3"):
        clf.predict(table_of(library, FRAME.assign(heat=[1.0, 2.0, NAN, INF])))


def test_a_declared_infinite_category_is_refused_too():
    column = pd.Categorical([1.0, 2.0], [1.0, 2.0, INF])
    with pytest.raises(ColumnError, match=r"infinite number .* among its categories"):
        TableEncoder(cardinality="declared").fit(pd.DataFrame({"x": column}))


def test_a_whole_number_beyond_float64_is_refused():
    X = np.array([[10**400], [1]], dtype=object)
    with pytest.raises(ColumnError, match=r"Column 0 holds .* too large for float64"):
        NaiveBayes().fit(X, [0, 1])


# ------------------------------------------------------------------------- whole tables


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.empty((0, 2)), r"0 sample\(s\)"),
        (np.empty((2, 0)), r"0 feature\(s\)"),
        (FRAME.iloc[:0], r"0 sample\(s\).*The table has no rows"),
        (FRAME[[]], r"0 feature\(s\).*The table has no columns"),
        (pl.from_pandas(FRAME).head(0), r"0 sample\(s\)"),
        (pl.DataFrame(), r"0 feature\(s\)"),
        (pa.Table.from_pandas(FRAME).slice(0, 0), r"0 sample\(s\)"),
        (pa.table({}), r"0 feature\(s\)"),
        ([], "Expected 2D array|0 sample"),
    ],
    ids=range(9),
)
def test_an_empty_table_is_refused_at_fit_and_prediction(clf, X, words):
    with pytest.raises(ValueError, match=words):
        NaiveBayes().fit(X, [])
    with pytest.raises(ValueError, match=words):
        clf.predict(X)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.arange(4.0), "(?s)Expected 2D array, got 1D array.*Reshape your data"),
        (np.zeros((4, 2, 2)), "dim 3"),
        (np.array(5.0), "Expected 2D array, got scalar"),
        ([1.0, 2.0, 3.0, 4.0], "Expected 2D array, got 1D"),
        (FRAME["heat"], r"single column \(1D\).*to_frame"),
        (pl.Series([1, 2, 3, 4]), "single column"),
        (pa.chunked_array([[1, 2, 3, 4]]), "single column"),
        (
            pl.from_pandas(FRAME).lazy(),
            r"lazy.*\.collect\(\)|read in chunks.*name of a column",
        ),
        ({"a": [1, 2, 3, 4]}, r"mapping is not a table.*pandas\.DataFrame"),
        (np.array([[1j], [2], [3], [4]]), "Complex data not supported"),
        (np.array([[b"a"], [b"b"], [b"c"], [b"d"]]), r"bytes.*decode"),
        (np.zeros((4, 1), dtype="M8[D]"), "datetime64.*dates have to be turned"),
        (np.zeros((4, 1), dtype="m8[s]"), "timedelta64.*not supported"),
    ],
    ids=range(13),
)
def test_what_is_no_table_is_refused(clf, X, words):
    with pytest.raises(ValueError, match=words):
        NaiveBayes().fit(X, Y)
    with pytest.raises(ValueError, match=words):
        clf.predict(X)


@pytest.mark.parametrize(
    "make", [sparse.csr_matrix, sparse.coo_array, sparse.csc_array]
)
def test_a_sparse_matrix_is_refused_with_the_way_out(make):
    with pytest.raises(TypeError, match=r"Sparse data was passed.*toarray\(\)"):
        NaiveBayes().fit(make(np.eye(4)), Y)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame([[1, 2, 3]] * 4, columns=["a", "b", "a"]),
        pa.table([[1, 2, 3, 4]] * 3, names=["a", "b", "a"]),
    ],
    ids=["pandas", "pyarrow"],
)
def test_column_names_that_occur_twice_are_named(table):
    with pytest.raises(ColumnError, match=r"more than once: 'a'\. Every column"):
        NaiveBayes().fit(table, Y)


def test_column_names_of_text_and_numbers_together_are_refused():
    with pytest.raises(ColumnError, match=r"some are not: 'a', '1'.*astype\(str\)"):
        NaiveBayes().fit(pd.DataFrame([[1, 2]] * 4, columns=["a", 1]), Y)


# ----------------------------------------------------------------- cells of other kinds

DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 12)
DATES = {
    "objects": np.array([[DAY], [None]], dtype=object),
    "moments": np.array([[MOMENT], [None]], dtype=object),
    "numpy scalars": np.array([[np.datetime64("2024-02-29")], [None]], dtype=object),
    "durations": np.array([[np.timedelta64(3, "D")], [None]], dtype=object),
    "list": [[DAY], [DAY]],
    "pandas objects": pd.DataFrame({0: pd.Series([DAY, None], dtype=object)}),
    "pandas": pd.DataFrame({0: pd.to_datetime(["2024-02-29", None])}),
    "pandas zone": pd.DataFrame({0: pd.to_datetime(["2024-02-29"] * 2, utc=True)}),
    "pandas delta": pd.DataFrame({0: pd.to_timedelta([1, 2], unit="s")}),
    "pandas arrow": pd.DataFrame({0: pd.array([DAY, None], "date32[pyarrow]")}),
    "pandas category": pd.DataFrame({0: pd.Categorical([MOMENT, None])}),
    "polars date": pl.DataFrame({"0": [DAY, None]}),
    "polars moment": pl.DataFrame({"0": [MOMENT, None]}),
    "polars time": pl.DataFrame({"0": [MOMENT.time(), None]}),
    "polars duration": pl.DataFrame({"0": [MOMENT - MOMENT, None]}),
    "pyarrow date": pa.table({"0": [DAY, None]}),
    "pyarrow moment": pa.table({"0": [MOMENT, None]}),
    "pyarrow dictionary": pa.table({"0": pa.array([DAY, None]).dictionary_encode()}),
}


# With a name they have parts: see test_dates.
NAMED = [name for name in DATES if name[:7] in ("polars ", "pyarrow")]
NAMED.remove("pyarrow dictionary")


@pytest.mark.parametrize("name", [name for name in DATES if name not in NAMED])
def test_dates_and_times_are_refused_with_the_way_out(name):
    words = "Column '?0'? holds dates or times.*numbers.*or text"
    with pytest.raises(ColumnError, match=words):
        NaiveBayes().fit(DATES[name], [0, 1])


def cells_of(*cells):
    array = np.empty((len(cells), 1), dtype=object)
    array[:, 0] = cells
    return array


STRUCT = {"a": 1}
ODD = {
    "list": (cells_of([1], [2, 3]), TypeError, "holds nested values"),
    "dict": (cells_of({}, {"a": 1}), TypeError, "holds nested values"),
    "tuple in pandas": (
        pd.DataFrame({"x": [(1, 2), (3,)]}),
        TypeError,
        "Column 'x' holds nested values",
    ),
    "polars list": (pl.DataFrame({"x": [[1], [2]]}), ColumnError, "'x' holds nested"),
    "polars struct": (pl.DataFrame({"x": [STRUCT] * 2}), ColumnError, "holds nested"),
    "pyarrow list": (pa.table({"x": [[1], [2]]}), ColumnError, "'x' holds nested"),
    "pyarrow struct": (pa.table({"x": [STRUCT] * 2}), ColumnError, "holds nested"),
    "complex cell": (cells_of(1j, 2j), TypeError, "holds a complex"),
    "complex pandas": (pd.DataFrame({"x": [1j, 2j]}), ColumnError, "complex128"),
    "bytes cell": (cells_of(b"a", b"b"), ColumnError, "holds bytes.*decode"),
    "bytes polars": (pl.DataFrame({"x": [b"a", b"b"]}), ColumnError, "'x' holds bytes"),
    "bytes pyarrow": (pa.table({"x": [b"a", b"b"]}), ColumnError, "holds bytes"),
    "an object": (cells_of(object(), object()), TypeError, "Column 0 holds a object"),
    "text and numbers": (cells_of("a", 1), ColumnError, "Column 0 mixes int and str"),
    "text and booleans": (cells_of("a", True), ColumnError, "mixes bool and str"),
    "mixed pandas": (
        pd.DataFrame({"x": ["a", 1.5]}),
        ColumnError,
        r"Column 'x' mixes float and str values.*astype\(str\)",
    ),
    "mixed categories": (
        pd.DataFrame({"x": pd.Categorical(["a", 1])}),
        ColumnError,
        "'x' mixes int and str",
    ),
    "intervals": (
        pd.DataFrame({"x": pd.cut(pd.Series([1.0, 2.0]), 2)}),
        ColumnError,
        r"'x' holds intervals.*astype\(str\)",
    ),
    "sparse pandas": (
        pd.DataFrame({"x": pd.arrays.SparseArray([0.0, 1.0])}),
        ColumnError,
        r"'x' is sparse.*to_dense\(\)",
    ),
    "periods": (
        pd.DataFrame({"x": pd.period_range("2024", periods=2, freq="M")}),
        ColumnError,
        r"not supported \(period\[M\]\)",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_cells_that_are_no_plain_values_are_refused(name):
    table, error, words = ODD[name]
    with pytest.raises(error, match=words):
        NaiveBayes().fit(table, [0, 1])


# ------------------------------------------------------------------- labels and weights


@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_one_class_is_not_enough(fit):
    words = "only one class is present: every label is 'in'. At least two"
    more = {"classes": ["in"]} if fit == "partial_fit" else {}
    with pytest.raises(TableError, match=words):
        getattr(NaiveBayes(), fit)(FRAME, ["in"] * 4, **more)


def test_one_class_left_by_weights_is_not_enough():
    with pytest.raises(TableError, match="only one class is present"):
        NaiveBayes().fit(FRAME, Y, sample_weight=[1, 0, 1, 0])


@pytest.mark.parametrize(
    "y",
    [
        ["in", None, "out", "in"],
        ["in", NAN, "out", "in"],
        np.array([0.0, NAN, 1.0, 0.0]),
        pd.Series(["in", pd.NA, "out", "in"], dtype="string"),
        pl.Series(["in", None, "out", "in"]),
        pa.chunked_array([["in", None, "out", "in"]]),
    ],
    ids=range(6),
)
def test_labels_with_missing_values_are_refused(y):
    with pytest.raises(TableError, match=r"Input y contains NaN.*Drop"):
        NaiveBayes().fit(FRAME, y)


@pytest.mark.parametrize("estimator", [NaiveBayes(), TableEncoder()], ids=str)
@pytest.mark.parametrize("y", [Y[:3], pd.Series(Y * 2), pl.Series(Y[:1])], ids=len)
def test_a_length_mismatch_names_both_lengths(estimator, y):
    words = f"inconsistent numbers of samples: the table has 4 rows.* {len(y)} labels"
    with pytest.raises(TableError, match=words):
        estimator.fit(FRAME, y)


WEIGHTS = [
    ([1, -2, 1, 1], r"Negative values .*`sample_weight` \(row 1: -2\)"),
    ([1, NAN, 1, 1], r"sample_weight contains NaN or infinity \(row 1\)"),
    ([1, 1, INF, 1], r"NaN or infinity \(row 2\)"),
    (pd.Series([1, None, 1, 1]), r"NaN or infinity \(row 1\)"),
    (pl.Series([1, None, 1, 1]), r"NaN or infinity \(row 1\)"),
    ([0, 0, 0, 0], "All sample weights are zero"),
    (0, "All sample weights are zero"),
    ([1, 1, 1], r"sample_weight.shape == \(3,\), expected \(4,\)"),
    ([[1, 1, 1, 1]], "must be 1D array or scalar, got 2D"),
    (["a", "b", "c", "d"], "sample_weight must hold numbers"),
]


@pytest.mark.parametrize("estimator", [NaiveBayes(), TableEncoder()], ids=str)
@pytest.mark.parametrize(("weights", "words"), WEIGHTS, ids=range(len(WEIGHTS)))
def test_unfit_weights_are_refused(estimator, weights, words):
    with pytest.raises(TableError, match=words):
        estimator.fit(FRAME, Y, sample_weight=weights)


# ----------------------------------------------------------------------------- settings

SETTINGS = [
    ("missing", "drop", "'missing'.*'skip', 'impute', 'value'.*Got 'drop'"),
    ("missing", None, "'missing'.*'skip', 'impute', 'value'.*Got None"),
    ("cardinality", "seen", "'cardinality'.*'observed', 'declared'.*Got 'seen'"),
    ("categorical_features", "some", "'categorical_features'.*'auto', 'all'.*'some'"),
    ("categorical_features", 1, "'categorical_features'.*'auto', 'all'.*Got 1"),
    ("categorical_features", [1.0], r"'categorical_features'.*position.*Got \[1\.0\]"),
    ("categorical_features", [True, 1], "`categorical_features`.*Got True"),
    ("categorical_features", ["no"], "`categorical_features` names 'no'.*sky, heat"),
    ("categorical_features", [3], r"names column 3.*3 columns \(0 to 2\)"),
    ("categorical_features", [-4], "names column -4"),
    ("categorical_features", [True], "mask.*1 entries for 3 columns"),
    ("numeric", "bins", "'numeric'.*'mdl'.*'gaussian'.*Got 'bins'"),
    ("numeric", None, "'numeric'.*'mdl'.*Got None"),
    ("numeric", EqualWidthDiscretizer, "'numeric'.*a discretizer"),
    ("numeric", {"heat": "bins"}, "'numeric'.*Got 'bins'"),
    ("numeric", {"cold": "mdl"}, "`numeric` names 'cold'.*Columns: sky, heat, flag"),
    ("numeric", {"sky": "mdl"}, "`numeric` names 'sky', but that column holds text"),
    ("numeric", {7: "mdl"}, "`numeric` names column 7"),
    ("numeric", EqualWidthDiscretizer(n_bins=0), "'n_bins'.*Got 0"),
    ("numeric", FixedEdgesDiscretizer([2.0, 1.0]), "'edges'.*increasing"),
    ("numeric", FixedEdgesDiscretizer({"cold": [1.0]}), "'edges'.*'cold'"),
    ("n_jobs", 0, "'n_jobs'.*None, a number.*Got 0"),
    ("n_jobs", "two", "'n_jobs'.*Got 'two'"),
    ("n_jobs", 1.5, r"'n_jobs'.*Got 1\.5"),
    ("smoothing", "more", "'smoothing'.*'m-estimate'.*'more'"),
    ("smoothing", -1.0, r"'smoothing'.*-1\.0"),
    ("prior", "flat", "'prior'.*'smoothed'.*'flat'"),
    ("prior", [0.5, 0.2], "prior"),
    ("variance_floor", -1, "'variance_floor'.*range.*Got -1"),
    ("class_weight", "equal", "'class_weight'.*'balanced'.*'equal'"),
    ("class_weight", {"else": 2}, r"`class_weight` names \['else'\].*'in', 'out'"),
]


@pytest.mark.parametrize(
    ("name", "value", "words"), SETTINGS, ids=[f"{s[0]}={s[1]}"[:40] for s in SETTINGS]
)
def test_a_wrong_setting_is_named_with_what_is_allowed(name, value, words):
    with pytest.raises(ParameterError) as caught:
        NaiveBayes(**{name: value}).fit(FRAME, Y)
    assert re.search(words, str(caught.value), re.DOTALL), str(caught.value)


def test_a_name_for_a_table_without_names_is_refused():
    with pytest.raises(ParameterError, match="no column names; use positions"):
        TableEncoder(["sky"]).fit(FRAME.to_numpy(dtype=object), Y)
