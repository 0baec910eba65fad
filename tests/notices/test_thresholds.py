"""A table on each side of every threshold of the notices."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import steelyard as sy
from steelyard.explain.page import page_data
from steelyard.notices.notice import arranged, in_lines, no_error_notice, shape_notices

pytestmark = pytest.mark.filterwarnings(
    "ignore::steelyard.exceptions.IdentifierWarning"
)
N = 1000


def noise(n=N, seed=0):
    """Return a column that tells nothing, and labels of two classes in turn."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"noise": rng.normal(size=n)}), np.arange(n) % 2


def kinds(X, y, **settings):
    """Return the kinds of notices of a fit, with the columns they are about."""
    clf = sy.NaiveBayes(**settings).fit(X, y)
    return {(notice.kind, notice.column) for notice in clf.notices_}


def texts(k, n):
    """Return text of n cells with k different values."""
    return [f"v{i % k}x" for i in range(n)]


# --------------------------------------------------------------------------- leaks


def wrong_code(n_wrong, n_values=2, n=N):
    """Return a table with a code that is wrong in some rows, evenly in both classes."""
    X, y = noise(n)
    code = np.where(np.arange(n) < n_wrong, 1 - y, y)
    return X.assign(
        code=[f"c{c}{i // 2 % (n_values // 2)}" for i, c in enumerate(code)]
    ), y


# The share of right rows, of which 0.995 and those of the largest class decide.
@pytest.mark.parametrize(("n_wrong", "is_leak"), [(4, True), (6, False), (16, False)])
def test_a_leak_is_right_in_nearly_all_rows(n_wrong, is_leak):
    found = kinds(*wrong_code(n_wrong))
    assert (("leak", "code") in found) == is_leak
    assert (("near-leak", "code") in found) != is_leak


@pytest.mark.parametrize(("n_errors", "is_leak"), [(1, True), (3, False)])
def test_a_leak_has_few_errors_beside_those_of_the_largest_class(n_errors, is_leak):
    X, y = noise()
    y = (np.arange(N) < 100).astype(int)
    code = y.copy()
    code[100 : 100 + n_errors] = 1
    found = kinds(X.assign(code=code.astype(str)), y)
    assert (("leak", "code") in found) == is_leak


@pytest.mark.parametrize(("n_rows", "is_leak"), [(100, True), (98, False)])
def test_codes_of_a_leak_have_ten_rows_each(n_rows, is_leak):
    assert (("leak", "code") in kinds(*wrong_code(0, 10, n_rows))) == is_leak


@pytest.mark.parametrize(("n_values", "is_reported"), [(100, True), (102, False)])
def test_codes_of_a_near_leak_have_ten_rows_each(n_values, is_reported):
    assert (("near-leak", "code") in kinds(*wrong_code(0, n_values))) == is_reported


@pytest.mark.parametrize(("n_values", "is_leak"), [(10, True), (12, False)])
def test_numbers_of_a_leak_have_few_values(n_values, is_leak):
    X, y = noise()
    number = y * 100 + np.arange(N) // 2 % (n_values // 2)
    assert (("leak", "number") in kinds(X.assign(number=number), y)) == is_leak


@pytest.mark.parametrize(("n_next", "is_leak"), [(12, True), (8, False)])
def test_no_other_column_comes_near_a_leak(n_next, is_leak):
    X, y = wrong_code(2)
    honest = np.where(np.arange(N) < N - n_next, y, 1 - y)
    found = kinds(X.assign(honest=honest.astype(str)), y)
    assert (("leak", "code") in found) == is_leak


@pytest.mark.parametrize(("n_leaks", "is_reported"), [(2, True), (3, False)])
def test_more_than_two_leaks_are_an_easy_table(n_leaks, is_reported):
    X, y = noise()
    for k in range(n_leaks):
        # Not the same column again: another row is wrong in each.
        X[f"code{k}"] = np.where(np.arange(N) == k, 1 - y, y).astype(str)
    assert (("leak", "code0") in kinds(X, y)) == is_reported


@pytest.mark.parametrize(("n_wrong", "is_reported"), [(36, True), (44, False)])
def test_a_column_that_nearly_separates_the_classes_is_reported(n_wrong, is_reported):
    # Of a code with two values the area is the share of right rows, here .96.
    found = kinds(*wrong_code(n_wrong))
    assert (("near-leak", "code") in found) == is_reported


@pytest.mark.parametrize(("shift", "is_reported"), [(2.7, True), (2.2, False)])
@pytest.mark.parametrize("method", ["NB", "SHNB"])
def test_a_number_that_nearly_separates_the_classes_is_reported(
    method, shift, is_reported
):
    # Areas of .972 and .94.
    X, y = noise()
    score = np.random.default_rng(1).normal(size=N) + shift * y
    clf = sy.method(method).fit(X.assign(score=score), y)
    assert ("near-leak" in {n.kind for n in clf.notices_}) == is_reported


def test_a_number_that_separates_the_classes_is_reported():
    X, y = noise()
    score = np.random.default_rng(1).normal(size=N) + 10 * y - 5
    (notice,) = sy.ShrinkageNB().fit(X.assign(score=score), y).notices_
    assert (notice.kind, notice.column) == ("near-leak", "score")
    assert "ROC curve 1.000" in notice.text


@pytest.mark.parametrize(("n_wrong", "is_reported"), [(170, True), (130, False)])
def test_no_other_column_comes_near_a_near_leak(n_wrong, is_reported):
    X, y = wrong_code(30)
    other = np.where(np.arange(N) >= N - n_wrong, 1 - y, y)
    found = kinds(X.assign(other=other.astype(str)), y)
    assert (("near-leak", "code") in found) == is_reported


@pytest.mark.parametrize(("n_next", "is_reported"), [(56, True), (44, False)])
def test_no_column_at_all_comes_near_where_a_leak_has_no_errors(n_next, is_reported):
    X, y = noise()
    y = np.arange(N) % 2
    score = np.random.default_rng(1).normal(size=N) + 20 * y
    other = np.where(np.arange(N) < n_next, 1 - y, y)
    found = kinds(X.assign(score=score, other=other.astype(str)), y)
    assert (("near-leak", "score") in found) == is_reported


@pytest.mark.parametrize(("n_known", "is_reported"), [(510, True), (490, False)])
def test_a_leak_is_known_in_half_of_the_rows(n_known, is_reported):
    X, y = wrong_code(0)
    X.loc[n_known:, "code"] = None
    assert (("leak", "code") in kinds(X, y)) == is_reported


# ------------------------------------------------------------------------- classes


@pytest.mark.parametrize(("n_rows", "is_reported"), [(2, True), (3, False)])
def test_classes_of_one_or_two_rows_are_reported(n_rows, is_reported):
    X, y = noise(60)
    y[:n_rows] = 7
    assert (("small-class", None) in kinds(X, y)) == is_reported


@pytest.mark.parametrize(
    ("n_small", "n_rows", "is_reported"),
    [(9, 1000, True), (11, 1000, False), (10, 1001, True)],
)
def test_a_class_of_a_hundredth_is_reported(n_small, n_rows, is_reported):
    # Less than a hundredth of all rows is so of the largest class as well.
    X, _ = noise(n_rows)
    y = (np.arange(n_rows) < n_small).astype(int)
    assert (("unequal-classes", None) in kinds(X, y)) == (
        is_reported and n_small < (n_rows - n_small) / 100
    )


# ------------------------------------------------------------------ single columns


@pytest.mark.parametrize(("n_values", "is_reported"), [(21, True), (20, False)])
def test_text_like_numbers_has_many_values(n_values, is_reported):
    X, y = noise()
    cells = [f"{i % n_values} kg" for i in range(N)]
    assert (("digits", "text") in kinds(X.assign(text=cells), y)) == is_reported


@pytest.mark.parametrize(("n_words", "is_reported"), [(98, True), (102, False)])
def test_nine_in_ten_cells_of_text_like_numbers_begin_with_a_digit(
    n_words, is_reported
):
    X, y = noise()
    cells = ["none" if i < n_words else f"{i % 40} kg" for i in range(N)]
    assert (("digits", "text") in kinds(X.assign(text=cells), y)) == is_reported


@pytest.mark.parametrize(("n_values", "is_reported"), [(1000, True), (1001, False)])
def test_values_are_compared_where_they_are_not_too_many(n_values, is_reported):
    X, y = noise(3000)
    cells = [f"w{i % (n_values - 1)}" for i in range(3000)]
    cells[0] = "W5"
    assert (("spelling", "text") in kinds(X.assign(text=cells), y)) == is_reported


@pytest.mark.parametrize(("n_known", "is_reported"), [(49, True), (51, False)])
@pytest.mark.parametrize("cell", ["number", "text"])
def test_a_column_that_is_nearly_empty_is_reported(cell, n_known, is_reported):
    X, y = noise()
    cells = pd.Series(np.arange(N) % 7 / 2.0)
    cells = cells if cell == "number" else "a" + cells.astype(str)
    found = kinds(X.assign(rare=cells.where(np.arange(N) < n_known)), y)
    assert (("nearly-empty", "rare") in found) == is_reported


def with_code(n_code, code, n_values=500):
    X, y = noise()
    numbers = np.arange(N) % n_values * (100.0 / n_values)
    numbers[np.random.default_rng(0).permutation(N)[:n_code]] = code
    return X.assign(size=numbers), y


# The middle half of 0 to 100 is 50 wide.
@pytest.mark.parametrize(("code", "is_reported"), [(-80.0, True), (-70.0, False)])
def test_a_code_for_missing_is_far_from_all_numbers(code, is_reported):
    assert (("missing-code", "size") in kinds(*with_code(20, code))) == is_reported


@pytest.mark.parametrize(("n_code", "is_reported"), [(5, True), (4, False)])
def test_a_code_for_missing_occurs_often(n_code, is_reported):
    assert (
        ("missing-code", "size") in kinds(*with_code(n_code, -999.0))
    ) == is_reported


@pytest.mark.parametrize(("n_code", "is_reported"), [(490, True), (510, False)])
def test_a_code_for_missing_is_not_in_most_rows(n_code, is_reported):
    assert (
        ("missing-code", "size") in kinds(*with_code(n_code, -999.0))
    ) == is_reported


@pytest.mark.parametrize(("n_values", "is_reported"), [(10, True), (9, False)])
def test_a_code_for_missing_is_beside_measurements(n_values, is_reported):
    X, y = with_code(20, -999.0, n_values)
    assert (("missing-code", "size") in kinds(X, y)) == is_reported


@pytest.mark.parametrize(("n_values", "is_reported"), [(191, True), (189, False)])
def test_text_is_an_identifier_where_nearly_all_values_differ(n_values, is_reported):
    X, y = noise(200)
    found = kinds(X.assign(name=texts(n_values, 200)), y)
    assert (("identifier", "name") in found) == is_reported


@pytest.mark.parametrize(("n_rows", "is_reported"), [(20, True), (19, False)])
def test_identifiers_are_looked_for_in_twenty_rows(n_rows, is_reported):
    X, y = noise(n_rows)
    found = kinds(X.assign(name=texts(n_rows, n_rows)), y)
    assert (("identifier", "name") in found) == is_reported


@pytest.mark.parametrize("name", ["ID", "id", "patient_id", "patientId", "Id number"])
@pytest.mark.parametrize(("n_values", "is_reported"), [(181, True), (179, False)])
def test_whole_numbers_called_an_identifier_nearly_all_differ(
    name, n_values, is_reported
):
    X, y = noise(200)
    numbers = np.random.default_rng(0).permutation(90_000)[:n_values] + 1000
    X = X.assign(**{name: numbers[np.arange(200) % n_values]})
    assert (("identifier", name) in kinds(X, y)) == is_reported
    streamed = sy.NaiveBayes().fit(
        sy.scan([X[:90].assign(y=y[:90]), X[90:].assign(y=y[90:])]), "y"
    )
    assert ({n.kind for n in streamed.notices_} == {"identifier"}) == is_reported
    is_kept = not sy.ShrinkageNB(cv=3).fit(X, y).encoder_.schema_.left_out
    assert is_kept != is_reported


@pytest.mark.parametrize("name", ["width", "Madrid", "grid", "idle", "identity"])
def test_whole_numbers_with_other_names_are_measurements(name):
    X, y = noise(200)
    numbers = np.random.default_rng(0).permutation(90_000)[:200]
    assert kinds(X.assign(**{name: numbers}), y) == set()


def test_fractions_called_an_identifier_are_measurements():
    X, y = noise(200)
    assert kinds(X.rename(columns={"noise": "id"}), y) == set()


# ------------------------------------------------------------------- equal columns


COPIES = {
    "the same": lambda v: v,
    "another unit": lambda v: 2.5 * v,
    "the other sign": lambda v: 7.0 - v,
    "logarithms": lambda v: np.log(v),
}


@pytest.mark.parametrize("copied", COPIES)
@pytest.mark.parametrize("n_values", [7, 1000])
def test_columns_with_the_same_information_are_reported(copied, n_values):
    X, y = noise()
    income = 1.0 + np.random.default_rng(3).permutation(N) % n_values * 7.5
    income[::50] = np.nan
    X = X.assign(income=income, copy=COPIES[copied](income))
    (notice,) = sy.NaiveBayes().fit(X, y).notices_
    assert notice.kind == "same-columns" and "income, copy" in notice.text
    # Another cell in one row of 700, which is not among those compared first.
    X.loc[700, "copy"] += 1e-3 if n_values > 7 else COPIES[copied](3.0) - X["copy"][700]
    X.loc[700, "income"] = 1.0 if n_values == 7 else X["income"][701] + 0.5
    assert sy.NaiveBayes().fit(X, y).notices_ == []


def test_text_in_place_of_numbers_has_the_same_information():
    X, y = noise()
    level = np.random.default_rng(3).integers(0, 4, N)
    X = X.assign(level=level, word=np.array(list("cadb"), object)[level])
    assert ("same-columns", None) in kinds(X, y)


@pytest.mark.parametrize(("n_others", "is_reported"), [(10, True), (9, False)])
def test_columns_with_one_value_in_nearly_all_rows_are_alike_by_chance(
    n_others, is_reported
):
    X, y = noise(400)
    rare = (np.arange(400) < n_others).astype(float)
    assert (("same-columns", None) in kinds(X.assign(a=rare, b=rare), y)) == is_reported


def test_columns_that_differ_hold_not_the_same():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = pd.DataFrame(rng.normal(size=(300, 4))).add_prefix("x")
    assert kinds(X, y) == set()
    when = pd.date_range("2024-01-01", periods=300, freq="h")
    assert ("same-columns", None) not in kinds(X.assign(when=when), y)


# ---------------------------------------------------------------------------- rows


@pytest.mark.parametrize(("n_copies", "is_reported"), [(26, True), (24, False)])
def test_rows_that_occur_again_are_reported_from_a_twentieth_on(n_copies, is_reported):
    # Each copy makes two rows that occur more than once.
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N - n_copies, 3))).add_prefix("x")
    X = pd.concat([X, X[:n_copies]])
    assert (("repeated-rows", None) in kinds(X, np.arange(N) % 2)) == is_reported


@pytest.mark.parametrize(("n_values", "is_reported"), [(21, True), (19, False)])
def test_rows_that_occur_again_have_a_measurement(n_values, is_reported):
    X = pd.DataFrame({"size": np.arange(200) % n_values / 3})
    for k in range(8):
        X[f"x{k}"] = np.random.default_rng(k).integers(0, 3, 200)
    X = pd.concat([X, X])
    y = np.arange(400) % 2
    assert (("repeated-rows", None) in kinds(X, y)) == is_reported


@pytest.mark.parametrize(("n_cells", "is_reported"), [(1, True), (2, False)])
def test_rows_of_one_known_cell_are_reported(n_cells, is_reported):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(100, 5))).add_prefix("x")
    X.iloc[99, n_cells:] = np.nan
    assert (("sparse-rows", None) in kinds(X, np.arange(100) % 2)) == is_reported


@pytest.mark.parametrize(("n_columns", "is_reported"), [(5, True), (4, False)])
def test_rows_of_one_known_cell_are_reported_if_others_have_more(
    n_columns, is_reported
):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(100, n_columns))).add_prefix("x")
    X.iloc[99, 1:] = np.nan
    assert (("sparse-rows", None) in kinds(X, np.arange(100) % 2)) == is_reported


@pytest.mark.parametrize(("n_sparse", "is_reported"), [(4, True), (5, False)])
def test_rows_of_one_known_cell_are_few(n_sparse, is_reported):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 5))).add_prefix("x")
    X.iloc[-n_sparse:, 1:] = np.nan
    assert (("sparse-rows", None) in kinds(X, np.arange(200) % 2)) == is_reported


# ------------------------------------------------------------------------ new rows


def fitted():
    """Return a model of one number from 0 to 100, and one text."""
    X = pd.DataFrame({"size": np.arange(101.0), "word": texts(3, 101)})
    return sy.NaiveBayes().fit(X, np.arange(101) % 2)


def checked(sizes, words=None):
    """Return the kinds of notices of new rows."""
    new = pd.DataFrame({"size": sizes, "word": texts(3, len(sizes))})
    return {notice.kind for notice in fitted().check(new if words is None else words)}


@pytest.mark.parametrize(("number", "is_reported"), [(126.0, True), (124.0, False)])
def test_a_number_far_beyond_training_is_reported(number, is_reported):
    assert ("beyond" in checked([50.0] * 99 + [number])) == is_reported


@pytest.mark.parametrize(
    ("n_beyond", "n_rows", "is_reported"),
    [(10, 100, True), (9, 100, False), (3, 10, True), (2, 10, False)],
)
def test_many_numbers_a_little_beyond_training_are_reported(
    n_beyond, n_rows, is_reported
):
    sizes = [101.0] * n_beyond + [50.0] * (n_rows - n_beyond)
    assert ("beyond" in checked(sizes)) == is_reported


@pytest.mark.parametrize(
    ("n_missing", "n_rows", "is_reported"),
    [(10, 100, True), (9, 100, False), (3, 10, True), (2, 10, False)],
)
def test_cells_that_are_missing_only_now_are_reported(n_missing, n_rows, is_reported):
    sizes = [np.nan] * n_missing + [50.0] * (n_rows - n_missing)
    assert ("new-missing" in checked(sizes)) == is_reported


@pytest.mark.parametrize(("n_rows", "is_reported"), [(2, True), (1, False)])
def test_a_missing_column_is_reported_from_two_rows_on(n_rows, is_reported):
    assert ("all-missing" in checked([np.nan] * n_rows)) == is_reported


@pytest.mark.parametrize(("n_seen", "is_reported"), [(11, True), (10, False)])
def test_rows_that_were_learned_from_are_reported_from_a_tenth_on(n_seen, is_reported):
    X, y = noise(200)
    clf = sy.NaiveBayes().fit(X, y)
    new, labels = noise(100, seed=5)
    new[:n_seen] = X[:n_seen]
    found = {notice.kind for notice in clf.check(new, labels)}
    assert ("seen-rows" in found) == is_reported


@pytest.mark.parametrize(("n_rows", "is_reported"), [(5, True), (4, False)])
def test_rows_that_were_learned_from_are_reported_from_five_rows_on(
    n_rows, is_reported
):
    X, y = noise(200)
    found = sy.NaiveBayes().fit(X, y).check(X[:n_rows], y[:n_rows])
    assert ("seen-rows" in {notice.kind for notice in found}) == is_reported


@pytest.mark.parametrize(("n_copies", "is_reported"), [(6, True), (5, False)])
def test_new_rows_that_occur_again_are_reported_from_a_tenth_on(n_copies, is_reported):
    # Each copy makes two rows that occur more than once.
    X, y = noise(200)
    new, labels = noise(100, seed=5)
    new[-n_copies:] = new[:n_copies]
    found = sy.NaiveBayes().fit(X, y).check(new, labels)
    assert ("repeated-rows" in {notice.kind for notice in found}) == is_reported


# ------------------------------------------------------------------------- figures


@pytest.mark.parametrize(("shaped", "is_reported"), [(0.5021, True), (0.5019, False)])
def test_shapes_that_cost_little_are_not_reported(shaped, is_reported):
    found = [*shape_notices(["a"], False, (0.5, shaped, 1e-4))]
    assert bool(found) == is_reported


@pytest.mark.parametrize(("shaped", "is_reported"), [(0.521, True), (0.519, False)])
def test_shapes_cost_more_than_two_standard_errors(shaped, is_reported):
    assert bool([*shape_notices(["a"], False, (0.5, shaped, 0.01))]) == is_reported


@pytest.mark.parametrize(
    ("accuracy", "majority", "is_reported"),
    [
        *[(0.9991, 0.5, True), (0.9989, 0.5, False)],
        *[(0.9996, 0.99, True), (0.9994, 0.99, False)],
    ],
)
def test_next_to_no_errors_are_reported(accuracy, majority, is_reported):
    assert bool([*no_error_notice(accuracy, majority, 5000)]) == is_reported


@pytest.mark.parametrize("gives_away", [True, False])
def test_two_columns_that_give_the_class_away_together_are_reported(gives_away):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.choice(["x", "y"], (N, 2)), columns=["a", "b"])
    X["c"] = rng.normal(size=N)
    is_wrong = rng.random(N) < (0.0 if gives_away else 0.02)
    clf = sy.ShrinkageNB().fit(X, (X["a"] == X["b"]) != is_wrong)
    assert [notice.kind for notice in clf.notices_] == ["no-errors"] * gives_away


def test_a_leak_explains_why_there_are_no_errors():
    X, y = wrong_code(0)
    found = [notice.kind for notice in sy.ShrinkageNB().fit(X, y).notices_]
    assert "leak" in found and "no-errors" not in found


def test_more_than_three_columns_are_one_notice_and_twelve_lines_are_shown():
    def many(n):
        return [sy.Notice("spelling", "x", f"c{k}") for k in range(n)]

    assert len(arranged(many(3))) == 3 and len(arranged(many(4))) == 1
    assert len(in_lines(many(12))) == 12 and len(in_lines(many(14))) == 13


@pytest.mark.parametrize(
    ("n_wrong", "are_dates", "is_reported"),
    [(0, False, True), (4, False, True), (8, False, False), (0, True, True)],
)
def test_the_larger_of_two_columns_that_gives_the_class_away_is_reported(
    n_wrong, are_dates, is_reported
):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 3)), columns=["due", "amount", "paid"])
    late = (X["paid"] > X["due"]) != (np.arange(N) < n_wrong)
    X.loc[N // 2, "due"] = np.nan
    if are_dates:
        days = pd.to_timedelta(100.0 * X[["due", "paid"]].stack(), unit="D").unstack()
        X[["due", "paid"]] = pd.Timestamp("2024-06-01") + days
    found = [n for n in sy.NaiveBayes().fit(X, late).notices_ if n.kind == "leak"]
    assert [n.text[:12] for n in found] == ["due and paid"] * is_reported


def test_many_pairs_that_tell_the_class_are_no_leak():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    X = pd.DataFrame(rng.normal(size=(N, 6)) + np.outer(y - 0.5, [9, 9, 9, -9, -9, -9]))
    assert "leak" not in {n.kind for n in sy.NaiveBayes().fit(X, y).notices_}


@pytest.mark.parametrize(("n_each", "is_reported"), [(9, True), (11, False)])
@pytest.mark.parametrize("form", ["{}", "P{}"])
def test_rows_of_one_person_are_reported(n_each, is_reported, form):
    X, y = noise()
    person = [form.format(i * 31 % (N // n_each)) for i in range(N)]
    if form == "{}":
        person = [int(p) for p in person]
    found = kinds(X.assign(**{"patient id": person}), y)
    # Numbers are reported in any case: they measure nothing.
    is_number = form == "{}"
    assert (("row-groups", "patient id") in found) == (is_reported or is_number)
    assert ("row-groups", "patient") not in kinds(X.assign(patient=person), y)


# --------------------------------------------------------------------------- curves


def tariffs(slope, n=2_000):
    """Return services, their price, and labels that follow a service and a slope."""
    rng = np.random.default_rng(6)
    service = rng.integers(0, 5, n)
    price = 20.0 * service + rng.normal(0.0, 8.0, n)
    odds = 2.0 * (service - 2) + slope * (price - 40.0)
    X = pd.DataFrame({"service": np.array(list("abcde"))[service], "price": price})
    return X.assign(noise=rng.normal(size=n)), (rng.random(n) < expit(odds)).astype(int)


@pytest.mark.parametrize(("slope", "is_opposed"), [(-0.06, True), (0.02, False)])
def test_a_curve_runs_against_its_column_alone_where_another_says_the_same(
    slope, is_opposed
):
    X, y = tariffs(slope)
    clf = sy.ShrinkageNB(interactions=None).fit(X, y)
    found = [notice for notice in clf.notices_ if notice.kind == "opposed-curve"]
    assert [notice.column for notice in found] == ["price"] * is_opposed
    if is_opposed:
        assert found[0].text.endswith(
            "alone; service carries much of the same information"
        )
        price = page_data(clf)["attributes"][1]
        assert price["name"] == "price" and price["opposed"] == ["service"]
        alone = sy.ShrinkageNB().fit(X[["price"]], y)
        assert "opposed-curve" not in {notice.kind for notice in alone.notices_}
