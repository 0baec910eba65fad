"""What a comparison looks like as text."""

import csv
import io
import re

import numpy as np
import pytest

from steelyard.evaluation.metrics import reliability_bins
from steelyard.exceptions import ParameterError
from steelyard.lab.report.layouts import (
    control_table,
    dataset_table,
    leak_tables,
    wilcoxon_table,
    win_tie_loss_table,
)
from steelyard.lab.report.summaries import summaries, summarize
from steelyard.lab.report.writers import (
    print_results,
    results_to_csv,
    results_to_latex,
    results_to_markdown,
)
from steelyard.lab.results import Results
from steelyard.lab.statistics import holm, wilcoxon_signed_rank

BOTH = ("honest", "published-rnb")
FAILED = [(2, "NB", 1), (2, "NB", 3)]


def column(table, name):
    place = table.header.index(name)
    return {row[0].text: row[place] for row in table.rows}


# From rows to figures


def test_means_and_spreads_are_those_of_the_folds(make_results):
    results = make_results()
    summary = summarize(results)
    for i, dataset in enumerate(summary.datasets):
        for j, method in enumerate(summary.methods):
            values = results.values("accuracy", dataset, method)
            assert summary.means[i, j] == pytest.approx(values.mean())
            assert summary.spreads[i, j] == pytest.approx(values.std(ddof=1))
    assert summary.means == pytest.approx(results.matrix("accuracy"))
    assert summary.ratio == pytest.approx(np.full(6, 1 / 9))


def test_a_data_set_with_failed_folds_is_left_out_of_averages_and_tests(make_results):
    summary = summarize(make_results(failed=FAILED))
    assert summary.complete.tolist() == [0, 1, 3, 4, 5]
    assert summary.averages == pytest.approx(
        summary.means[[0, 1, 3, 4, 5]].mean(axis=0)
    )
    assert summary.failed[2].tolist() == [0, 2, 0]
    assert summary.friedman.n_datasets == 5
    cell = column(dataset_table(summary), "NB")["set 2"]
    assert cell.text.endswith("*")
    assert not cell.best


def test_folds_that_were_never_run_count_as_missing(make_results):
    rows = make_results().rows
    rows = [
        row
        for row in rows
        if (row["dataset"], row["method"], row["fold"]) != ("set 1", "GNB", 4)
    ]
    assert 1 not in summarize(Results(rows)).complete


def test_of_two_rows_for_one_fit_the_later_counts(make_results):
    rows = make_results(n_datasets=1).rows
    again = rows[0] | {"accuracy": 0.123}
    assert summarize(Results([*rows, again])).folds[0, 0, 0] == 0.123


def test_sizes_that_rows_do_not_say_follow_from_the_number_of_folds(make_results):
    rows = [row | {"n_train": None} for row in make_results().rows]
    assert summarize(Results(rows)).ratio == pytest.approx(np.full(6, 1 / 4))


def test_losses_are_ranked_the_other_way_round(make_results):
    results = make_results()
    accuracy, loss = (summarize(results, name) for name in ("accuracy", "log_loss"))
    assert loss.ranks == pytest.approx(accuracy.ranks)
    assert loss.leader == accuracy.leader == 0
    assert np.array_equal(loss.best, accuracy.best)
    assert np.array_equal(loss.win_tie_loss.wins, accuracy.win_tie_loss.wins)
    assert loss.wilcoxon.r_plus == pytest.approx(accuracy.wilcoxon.r_plus)


def test_measures_without_values_are_left_out_unless_asked_for(make_results):
    results = make_results()
    assert "peak_memory_mb" not in {s.measure.name for s in summaries(results)}
    (asked,) = summaries(results, ["peak_memory_mb"])
    assert np.isnan(asked.averages).all()


def test_what_results_do_not_hold_is_named(make_results):
    results = make_results(protocols=BOTH)
    with pytest.raises(
        ParameterError, match=r"several protocols.*honest, published-rnb"
    ):
        summarize(results)
    with pytest.raises(ParameterError, match="no protocol 'fair'"):
        summarize(results, protocol="fair")
    with pytest.raises(ParameterError, match=r"no metric 'precision'.*accuracy"):
        summarize(results, "precision")
    with pytest.raises(ParameterError, match=r"no method 'XNB'.*RNB, NB, GNB"):
        results_to_markdown(results, control="XNB")
    with pytest.raises(ParameterError, match=r"'peak_memory_mb'.*with values"):
        results_to_markdown(results, metric="peak_memory_mb")


def test_the_leak_is_the_difference_of_both_protocols(make_results):
    results = make_results(protocols=BOTH, failed=FAILED)
    (table,) = leak_tables(summaries(results), "accuracy")
    honest, published = (results.matrix("accuracy", name) for name in BOTH)
    difference = np.array([[cell.value for cell in row[1:-1]] for row in table.rows])
    assert difference == pytest.approx(published - honest, nan_ok=True)
    assert table.foot[0][-1].value == pytest.approx(0.02, abs=0.01)
    assert "published-rnb" in table.title
    assert leak_tables(summaries(make_results()), "accuracy") == []


def test_protocols_without_a_common_cell_show_no_leak(make_results):
    rows = make_results(methods=("RNB",)).rows
    rows += make_results(methods=("NB",), protocols=BOTH[1:]).rows
    assert leak_tables(summaries(Results(rows)), "accuracy") == []


# Tables


def test_wilcoxon_cells_say_direction_p_and_significance(make_results):
    summary = summarize(make_results(n_datasets=12))
    table = wilcoxon_table(summary)
    cell = column(table, "GNB")["RNB"]
    test = wilcoxon_signed_rank(summary.scores[:, 0], summary.scores[:, 2])
    assert test.p_value == pytest.approx(2 / 2**12)
    assert cell.text == "+ <.001**"
    assert column(table, "RNB")["GNB"].text == "- <.001**"


@pytest.mark.parametrize("metric", ["accuracy", "log_loss"])
def test_a_control_is_tested_against_each_of_the_others(metric, make_results):
    results = make_results(n_datasets=12)
    for row in results.rows:
        row["log_loss"] = 1.0 - row["accuracy"]
    summary = summarize(results, metric)
    table = control_table(summary, "NB")
    own = summary.methods.index("NB")
    names = [row[0].text for row in table.rows]
    assert sorted(names) == sorted(set(summary.methods) - {"NB"})
    sign = 1 if metric == "accuracy" else -1
    tests = []
    for row in table.rows:
        other = summary.scores[:, summary.methods.index(row[0].text)]
        lead = sign * (summary.scores[:, own] - other)
        assert row[1].value == pytest.approx(lead.mean())
        assert row[2].text == f"{sum(lead > 0)}/{sum(lead == 0)}/{sum(lead < 0)}"
        tests.append(wilcoxon_signed_rank(lead).p_value)
        assert row[3].value == pytest.approx(tests[-1])
    np.testing.assert_allclose([row[4].value for row in table.rows], holm(tests))
    assert table.rows == sorted(table.rows, key=lambda row: row[1].value)


def test_a_report_with_a_control_has_its_table(make_results):
    results = make_results(n_datasets=12)
    title = "NB against each method"
    assert title not in results_to_markdown(results)
    assert title in results_to_markdown(results, control="NB")


def test_pairs_mirror_in_the_table_of_wins(make_results):
    table = win_tie_loss_table(summarize(make_results()))
    one, other = column(table, "NB")["RNB"].text, column(table, "RNB")["NB"].text
    assert one.split("/") == other.split("/")[::-1]
    assert sum(map(int, one.split("/"))) == 6


# Text


def test_markdown_has_every_part_and_the_protocol_of_each(make_results):
    text = results_to_markdown(make_results(protocols=BOTH, failed=FAILED))
    headings = re.findall(r"^## (.*)", text, flags=re.MULTILINE)
    assert headings == [
        "Methods, by average rank of accuracy (%)",
        *(
            f"{title}; protocol {protocol}"
            for protocol in BOTH
            for title in (
                "accuracy (%), larger is better",
                "Wins/ties/losses, accuracy (%)",
                "Wilcoxon signed ranks, accuracy (%)",
            )
        ),
        "What the leak is worth, accuracy (%): protocol published-rnb minus honest",
        "Failed fits: 4 of 180",
    ]
    assert text.count("Friedman's test") == 2
    assert "| RNB | honest | **1.00** |" in text


def test_markdown_tables_keep_their_columns_whatever_names_hold(make_results):
    text = results_to_markdown(make_results(methods=("a|b", "NB")))
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        lines = block.splitlines()
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1


def test_markdown_shows_names_as_they_are(make_results):
    names = ("<img src=x onerror=y>", "[a](b)\n# c", "_d_ `e`")
    text = results_to_markdown(make_results(methods=names))
    for shown in (r"\<img src=x onerror=y\>", r"\[a\](b) # c", r"\_d\_ \`e\`"):
        assert shown in text
    assert not re.search(r"(?<!\\)[<`]|^# ", text, flags=re.MULTILINE)


def test_latex_escapes_names_and_has_as_many_cells_as_columns(make_results):
    text = results_to_latex(make_results(methods=("A_1 & 50%", "N#B", "G^N")))
    assert r"A\_1 \& 50\%" in text
    assert r"G\textasciicircum{}N" in text
    tables = re.findall(
        r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", text, flags=re.DOTALL
    )
    assert len(tables) == 4
    for columns, body in tables:
        lines = [line for line in body.splitlines() if line.endswith("\\\\")]
        cells = {len(re.split(r"(?<!\\)&", line)) for line in lines}
        assert cells == {len(columns)}


def test_csv_holds_exact_means_for_each_cell(make_results):
    results = make_results(protocols=BOTH, failed=FAILED)
    text = results_to_csv(results)
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(lines) == 6 * 3 * 2
    summary = summarize(results, "log_loss", "published-rnb")
    line = next(
        x
        for x in lines
        if (x["dataset"], x["method"]) == ("set 2", "NB")
        and x["protocol"] == "published-rnb"
    )
    assert float(line["log_loss"]) == summary.means[2, 1]
    assert (line["folds"], line["failed"]) == ("5", "2")


def test_the_terminal_shows_methods_data_sets_and_failures(make_results):
    stream = io.StringIO()
    print_results(make_results(failed=FAILED), file=stream, width=110)
    text = stream.getvalue()
    for part in ("RNB", "set 5", "average rank", "Friedman", "ValueError: <no> & no"):
        assert part in text
    assert "\x1b" not in text


def test_the_terminal_leaves_out_what_is_too_wide_and_says_so(make_results):
    stream = io.StringIO()
    methods = [f"a long name of method {i}" for i in range(9)]
    print_results(make_results(methods), file=stream, width=80)
    text = stream.getvalue()
    assert "wider than 80 characters: 1;" in text
    assert max(len(line) for line in text.splitlines() if "method 3" in line) <= 80


def test_no_rows_are_no_error():
    stream = io.StringIO()
    print_results(Results([]), file=stream)
    assert "no results" in stream.getvalue()
    assert "no results" in results_to_markdown(Results([]))


def test_where_no_fit_succeeded_the_failures_are_shown(make_results):
    every = [(0, name, 0) for name in ("RNB", "NB", "GNB")]
    results = make_results(n_datasets=1, n_folds=1, failed=every)
    assert "No fit succeeded" in results_to_markdown(results)


def test_one_data_set_and_one_method_are_shown_without_tests(make_results):
    for results in (make_results(n_datasets=1), make_results(methods=("NB",))):
        assert "Friedman" not in results_to_markdown(results)


def test_one_fold_is_shown_without_spread_or_t_test(make_results):
    text = results_to_markdown(make_results(n_folds=1))
    assert "fewer than two folds" in text
    assert "nan" not in text


def test_bins_hold_every_row_once_and_keep_equal_confidence_together():
    rng = np.random.default_rng(0)
    confidence = rng.integers(5, 10, 200) / 10
    correct = rng.random(200) < confidence
    bins = np.array(reliability_bins(correct, confidence))
    assert bins[:, 2].sum() == 200
    assert bins[:, 1] @ bins[:, 2] == pytest.approx(correct.sum(), abs=0.01)
    assert set(bins[:, 0]) <= {0.5, 0.6, 0.7, 0.8, 0.9}
    many = reliability_bins(correct, rng.random(200), n_bins=10)
    assert [entry[2] for entry in many] == [20.0] * 10
