"""The exam: errors in units of the ceiling's, the score, its rows and its report."""

import dataclasses

import numpy as np
import pytest
import torch

from benchmarks.exam import exam as of_outside
from benchmarks.newton import control_names, exam, exam_figures, exam_report
from benchmarks.newton.exam import BOX, Errors, errors, measure, times_ceiling
from benchmarks.newton.exam_rows import CAUSAL, Exam
from benchmarks.newton.headline import headline
from benchmarks.newton.log_errors import log_errors
from orbits.runs.result import Case, Metric, Result
from orbits.runs.statistics import over_seeds
from symreg.leaderboard import rows

N, POINTS = 40, 12


def columns(error, exponent=1.0, seed=0):
    """Return columns of forces m1^exponent m2 / r^2 with a relative error of known size."""
    rng = np.random.default_rng(seed)
    sequence = np.repeat(np.arange(N), POINTS)
    m1, m2 = (np.exp(rng.uniform(-1, 1, N))[sequence] for _ in range(2))
    r = np.exp(rng.uniform(-1, 1, N * POINTS))
    true, predicted = m1 * m2 / r**2, m1**exponent * m2 / r**2
    signs = np.where(np.arange(N * POINTS) % 2, 1, -1)
    plain = {"sequence_id": sequence, "r": r, "m1": m1, "m2": m2, "force": true}
    plain["force_predicted"] = predicted * np.exp(error * signs)
    return {name: torch.from_numpy(value) for name, value in plain.items()}


def ceiling(*sizes):
    names = [BOX, "heavier", "closer"]
    return {
        name: Errors(np.full(N, POINTS * size**2), np.full(N, float(POINTS)))
        for name, size in zip(names, sizes, strict=True)
    }


@pytest.mark.full
def test_a_score_of_one_training_holds_the_truth_in_95_percent_of_samples():
    """Squares whose worst 1% make a fifth (a head's) to two fifths (the ceiling's) of their sum."""
    n, shifts, spread = 1000, 8, (1.5, 2.1)
    truth = np.exp((spread[0] ** 2 - spread[1] ** 2) / 4)
    hits = []
    for draw in range(150):
        rng = np.random.default_rng([5, draw])
        of_both = rng.normal(size=(2, n))  # a sequence is as hard in every shift, for both
        pairs = []
        for _ in range(shifts):
            own = rng.normal(size=(2, n))
            logs = (0.5**0.5) * (of_both + own)
            pairs.append(
                [Errors(np.exp(s * x), np.ones(n)) for s, x in zip(spread, logs, strict=True)]
            )
        _, low, high = times_ceiling(pairs)
        hits.append(low <= truth <= high)
    assert 0.90 < np.mean(hits) < 0.99, "92 to 98%, of 150 draws"


def test_the_score_is_the_geometric_mean_over_shifts_and_leaves_out_the_box():
    asked = {BOX: columns(0.3), "heavier": columns(0.2), "closer": columns(0.9)}
    found = measure(asked, ceiling(0.1, 0.1, 0.1), {})
    assert found["times_ceiling"].value == pytest.approx(3)
    assert found["times_ceiling@heavier"].value == pytest.approx(2)
    assert found["times_ceiling@closer"].value == pytest.approx(9)
    assert found["exam"].value == pytest.approx(np.sqrt(18))
    low, high = found["exam"][1:]
    assert low <= np.sqrt(18) * (1 + 1e-9)
    assert high >= np.sqrt(18) * (1 - 1e-9)


def test_the_true_force_scores_nothing_and_the_ceiling_one():
    asked = {BOX: columns(0.0), "heavier": columns(0.0), "closer": columns(0.0)}
    assert measure(asked, ceiling(0.1, 0.1, 0.1), {})["exam"].value < 1e-10
    asked = {BOX: columns(0.1), "heavier": columns(0.2), "closer": columns(0.3)}
    assert measure(asked, ceiling(0.1, 0.2, 0.3), {})["exam"].value == pytest.approx(1)


def test_the_exponent_is_that_of_the_subject_inside_the_shift():
    asked = {BOX: columns(0.0), "heavier": columns(0.0, 0.25), "closer": columns(0.0)}
    found = measure(asked, ceiling(0.1, 0.1, 0.1), {"heavier": "m1", "closer": None})
    assert found["exponent@heavier"].value == pytest.approx(0.25)
    assert found["law_exponent@heavier"].value == pytest.approx(1)
    assert "exponent@closer" not in found
    assert "exponent" not in found


def test_the_exam_is_passed_by_who_errs_little_and_keeps_every_exponent():
    each = examined("truth", 0.1), examined("table", 0.1, 0.5), examined("filter", 0.5)
    exam = Exam.of(each)
    rows = {row.variant: row for row in exam.rows}
    assert [rows[x].passed for x in ("truth", "table", "filter")] == [True, False, False]
    assert rows["table"].score.value < 2 < rows["filter"].score.value
    assert rows["filter"].kept == rows["truth"].kept == [1]
    (line,) = [x for x in exam_report.sentences(exam) if "passed" in x]
    assert "by 1 of 3 models" in line


def examined(variant, error, exponent=1.0):
    """Return the exam of a model that errs so much and has this exponent of a heavier body."""
    asked = {BOX: columns(error), "heavier": columns(error, exponent), "closer": columns(error)}
    found = measure(asked, ceiling(0.1, 1.0 if exponent != 1 else 0.1, 0.1), {"heavier": "m1"})
    metrics = {name: Metric(*np.atleast_1d(value)) for name, value in found.items()}
    return Result(Case("newton", "exam", variant, "scratch", 0), metrics=metrics)


def test_predictions_without_a_logarithm_have_no_score():
    broken = columns(0.1)
    broken["force_predicted"][: N * POINTS // 50] = -1.0
    found = measure({BOX: columns(0.1), "heavier": broken}, ceiling(1, 1, 1), {})
    assert "exam" not in found
    assert found["dropped@heavier"] == pytest.approx(1 / 50, rel=0.2)
    assert found["times_ceiling"].value == pytest.approx(0.1)
    found = measure({BOX: broken, "heavier": columns(0.1)}, ceiling(1, 1, 1), {})
    assert "exam" not in found, "the box is a part too"


def test_one_answer_without_a_logarithm_leaves_no_score():
    """Else a model would gain by none where it errs most."""
    silent = columns(0.1)
    silent["force_predicted"][1] = -1.0
    for part, other in ((BOX, "heavier"), ("heavier", BOX)):
        found = measure({part: silent, other: columns(0.1)}, ceiling(0.1, 0.1, 0.1), {})
        assert not {"exam", "median_exam"} & set(found)
        assert found["dropped" if part == BOX else "dropped@heavier"] == pytest.approx(
            1 / (N * POINTS)
        )


def test_errors_are_summed_by_sequence():
    each = errors(np.array([0, 0, 2]), np.array([np.e, 1.0, np.e**3]), np.ones(3), 3)
    assert each.squares.tolist() == pytest.approx([1, 0, 9])
    assert each.counts.tolist() == [2, 0, 1]


def test_medians_are_of_typical_sequences():
    wild = columns(0.2)
    wild["force_predicted"][: 3 * POINTS] *= 50  # three sequences of forty
    asked = {BOX: columns(0.3), "heavier": wild, "closer": columns(0.45)}
    found = measure(asked, ceiling(0.1, 0.1, 0.1), {})
    assert found["times_ceiling@heavier"].value > 10
    for name, error in (("", 0.3), ("@heavier", 0.2), ("@closer", 0.45)):
        assert found[f"median_log_error{name}"] == pytest.approx([error] * 3)
    assert found["median_exam"] == pytest.approx([0.3] * 3)
    assert (
        measure({BOX: columns(0.0)}, ceiling(0.1, 0.1, 0.1), {}).keys() & {"median_exam"} == set()
    )


def test_the_mean_error_is_signed_and_has_a_table_of_its_own():
    asked = {BOX: columns(0.0), "heavier": columns(0.0), "closer": columns(0.0)}
    asked["heavier"]["force_predicted"] *= np.exp(-0.7)
    found = measure(asked, ceiling(0.1, 0.1, 0.1), {})
    assert found["mean_log_error@heavier"] == pytest.approx([-0.7] * 3)
    assert found["mean_log_error"].value == pytest.approx(0, abs=1e-12)
    metrics = {name: Metric(*np.atleast_1d(value)) for name, value in found.items()}
    model = Result(Case("newton", "exam", "softmax", "scratch", 0), metrics=metrics)
    exam = Exam.of([model, *results("lssar", [30])])  # kept lines have no mean
    (row,) = exam_report.means(exam).rows
    assert [value.text for value in row[:1] + row[4:]] == ["softmax", "0", "0", "-0.7"]


def test_errors_stand_in_rows_of_their_sequences():
    sequence = np.array([2, 0, 2, 0, 0, 1])
    predicted = np.exp([1.0, -2.0, 3.0, 4.0, -5.0, 0.0])
    predicted[5] = -1.0
    table = log_errors(sequence, predicted, np.ones(6), 4)
    nan = np.nan
    np.testing.assert_allclose(table, [[-2, 4, -5], [nan] * 3, [1, 3, nan], [nan] * 3])


@pytest.mark.parametrize("given", [{}, {"model": ["mine.py:Mine"]}])
def test_who_names_no_model_is_told_that_an_example_is_examined(given, monkeypatch, capsys):
    monkeypatch.setattr(of_outside, "subjects", lambda settings: [])
    of_outside.STUDY.check(of_outside.STUDY.settings("tiny", **given))
    said = capsys.readouterr().out
    assert said.startswith("examined   worldmodel.examples.flat_model:FlatModel, an") != bool(given)


def test_errors_are_read_as_they_were_written(tmp_path):
    exam.save(tmp_path / "errors.npz", ceiling(0.1, 0.2, 0.3), {})
    read = exam.load(tmp_path / "errors.npz")
    assert read["closer"].squares == pytest.approx(np.full(N, POINTS * 0.09))


def results(variant, scores, arm="pretrained", labels=300, median=None, exponent=0.5):
    return [
        Result(
            Case(
                "newton", "exam", variant, arm, seed, "newton", "identifiable", {"labels": labels}
            ),
            metrics={
                "exam": Metric(score, 0.9 * score, 1.1 * score),
                "times_ceiling": Metric(score / 2),
                "times_ceiling@heavier": Metric(score),
                "exponent@heavier": Metric(exponent),
                "law_exponent@heavier": Metric(1.0),
                **(
                    {
                        "median_exam": Metric(median),
                        "median_log_error": Metric(median / 3),
                        "median_log_error@heavier": Metric(median),
                    }
                    if median
                    else {}
                ),
            },
        )
        for seed, score in enumerate(scores)
    ]


def test_rows_are_ranked_by_score_and_contestants_come_first():
    rows = Exam.of(
        [
            *results("softmax", [30, 40, 50]),
            *results("lssar", [20, 20, 22]),
            *results("k-NN", [3], "control", 1000),
            *results(CAUSAL, [1], "control", None),
        ]
    ).rows
    assert [row.variant for row in rows] == ["lssar", "softmax", "k-NN"]
    logs = over_seeds(np.log([30, 40, 50]))
    assert rows[1].score == pytest.approx(np.exp(logs))
    assert rows[1].trainings == "3"
    assert rows[1].exponents["heavier"].value == 0.5
    assert rows[2].score == (3, pytest.approx(2.7), pytest.approx(3.3))


def test_exponents_of_trainings_that_err_to_both_sides_are_not_kept():
    members = results("softmax", [30, 40, 50])
    for result, exponent in zip(members, (0.8, 1.2, 1.05), strict=True):
        result.metrics["exponent@heavier"] = Metric(exponent)
    (row,) = Exam.of(members).rows
    assert row.exponents["heavier"].value == pytest.approx(1.0, abs=0.02)
    assert list(row.kept) == [0, 0, 1]


def test_shifts_of_systems_and_of_the_time_step_have_scores_of_their_own():
    (row,) = Exam.of(results("softmax", (2.0, 8.0, 8.0))).rows
    assert row.of_systems is None, "heavier is no shift of the catalogue"
    known = {"closer": 2.0, "star_heavier": 8.0, "double_step": 32.0, "half_step": 2.0}
    made = [
        dataclasses.replace(
            x,
            metrics={"exam": x.metrics["exam"]}
            | {f"times_ceiling@{k}": Metric(v * f) for k, v in known.items()},
        )
        for x, f in zip(results("softmax", (2.0, 8.0, 8.0)), (1.0, 2.0, 4.0), strict=True)
    ]
    found = Exam.of(made)
    assert found.rows[0].of_systems.value == pytest.approx(8)
    assert found.rows[0].of_steps.value == pytest.approx(16)
    (alone,) = Exam.of(made[:1]).rows
    assert (alone.of_systems.value, alone.of_systems.high) == (4, np.inf)
    text = exam_report.scores(found).to_markdown()
    assert "systems" in text


def test_a_failed_exam_stays_a_row_and_a_missing_score_is_last():
    (lost,) = results("sigmoid", [1])
    failed = Result(lost.case, status="failed", error="ValueError: no")
    exam = Exam.of([*results("softmax", [30]), failed])
    rows = exam.rows
    assert [row.variant for row in rows] == ["softmax", "sigmoid"]
    assert rows[1].trainings == "-, 1 failed"
    assert rows[1].score is None
    (said,) = (x for x in exam_report.sentences(exam) if x.startswith("Without a score"))
    assert "sigmoid" in said
    assert "softmax" not in said


def test_medians_are_in_units_of_the_causal_ceilings(tmp_path):
    models = results("softmax", [30, 40, 50], median=0.6)
    ceiling_row = results("ceiling, causal", [1], "control", None, median=0.2)
    kept = results("lssar", [31, 40, 50])  # kept lines of before there were medians
    exam = Exam.of([*models, *ceiling_row, *kept])
    (table,) = exam_report.medians(exam)
    assert [column.heading for column in table.columns[4:]] == [
        "median exam",
        "in the box",
        "heavier",
    ]
    found = {row[0].text: [value.text for value in row[4:]] for row in table.rows}
    assert found == {"softmax": ["3"] * 3, "ceiling, causal": ["1"] * 3, "lssar": ["-"] * 3}
    assert exam_report.medians(Exam.of([*models, *kept])) == []
    (section,) = exam_report.section(exam, tmp_path)
    assert exam_report.MEDIANS_TITLE in [each.title for each in section.tables]
    assert exam_report.ITSELF in section.sentences


def test_a_figure_of_several_budgets_says_which_each_line_has():
    exam = Exam.of(
        [
            *(x for labels in (100, 1000) for x in results("softmax", [9], labels=labels)),
            *(x for n in (100, 1000) for x in results("log-linear filter", [25], "control", n)),
            *results("ceiling", [0.9], "control", None),
        ]
    )
    lines = exam_figures._lines(exam)
    names = [line.name for line in lines]
    assert len(set(names)) == len(names) == 4
    assert {"softmax, 100 labels", "log-linear filter, 1000 labels"} <= set(names)


def test_a_caption_says_how_many_models_have_no_line():
    def many(n):
        return Exam.of([x for name in range(n) for x in results(f"model {name}", [9 + name])])

    assert exam_figures._note(many(12)) == ""
    assert "Of 13 models the 12 that err least outside" in exam_figures._note(many(13))


def test_a_baseline_is_as_many_fits_as_it_has_sets_of_labels():
    fits = results("log-linear filter", [10, 12, 14], "control", 1000)
    fits[0] = dataclasses.replace(fits[0], case=dataclasses.replace(fits[0].case, seed=None))
    (row,) = Exam.of(fits).rows
    assert row.seeds == 3
    assert row.score == pytest.approx(np.exp(over_seeds(np.log([10, 12, 14]))))
    ((_, trained, *_),) = headline([row], []).rows
    assert trained.text == "control, 3 label sets"
    ((_, once, *_),) = headline(Exam.of(fits[:1]).rows, []).rows
    assert once.text == "control"


def test_the_report_names_the_best_and_draws_every_shift(tmp_path):
    models = [*results("softmax", [30, 40, 50]), *results("lssar", [20, 20, 22])]
    exam = Exam.of(models)
    first, second, nobody = exam_report.sentences(exam)
    assert "the best model, lssar, pretrained, 300 labels, errs 20.6" in first
    assert "softmax" in second
    assert nobody.endswith("by 0 of 2 models.")
    controls = [
        *results("2-NN on the true state", [3], "control", 1000),
        *results(control_names.nearest_elsewhere("newton"), [5], "control", 1000),
        *results(control_names.observer_name("power_1_5", past=False), [6], "control", None),
        *results(control_names.observer_name("newton", past=True), [7], "control", None),
        *results("log-linear filter", [25], "control", 1000),
        *results("power law", [0], "control", 1000),
        *results("ceiling", [0.9], "control", None),
    ]
    *_, plain, told, passed = exam_report.sentences(Exam.of([*models, *controls]))
    assert "0 of 2 look-up tables" in passed, "of another world's law too"
    assert "0 of 2 observers by another law" in passed
    assert plain.startswith("Without attention, log-linear filter, 1000 labels")
    assert "2-NN on the true state, 1000 labels: 3 [2.7, 3.3] times" in told
    (section,) = exam_report.section(exam, tmp_path)
    text = section.tables[0].to_markdown()
    assert "heavier" in text
    assert "Exponent of what was shifted" in section.tables[1].title
    assert (tmp_path / "exam.png").read_bytes().startswith(b"\x89PNG")
    assert exam_report.section(Exam.of([]), tmp_path) == []


def search(verdict, r, symbolic="no"):
    case = Case("newton", "search", "softmax", "pretrained", 0, "newton", "identifiable",
                {"labels": 300, "engine": "operon", "search": 0})  # fmt: skip
    metrics = {f"exponent_{x}": Metric(value) for x, value in (("r", r), ("m1", 1), ("m2", 1))}
    details = {"verdict": verdict, "symbolic": symbolic, "shape": "x"}
    return Result(case, cell=f"{verdict} {r}", metrics=metrics, details=details)


def test_the_headline_counts_formulas_at_three_strengths_and_says_who_passed():
    searches = [
        search("law", -2.0, "yes"),
        search("law", -1.99),
        search("law", -1.96),
        search("another law", -1.5),
        Result(search("law", -2.0).case, status="failed", error="no"),
    ]
    table = headline(Exam.of(results("softmax", [30, 40, 50])).rows, rows(searches))
    ((model, trained, labels, exam_score, passed, box, kept, formulas),) = table.rows
    assert (model.text, trained.text, labels.text) == ("softmax", "pretrained, 3", "300")
    assert exam_score.text == "39.1"
    assert passed.text == "no"
    assert box.text == "19.6"
    assert kept.text == "0, 0, 0 of 1", "the exponent is 0.5 where the law's is 1"
    assert formulas.text == "3 / 2 / 1 of 5"
    (kept,) = headline(Exam.of(results("softmax", [1, 1.5, 2], exponent=1.0)).rows, []).rows
    assert kept[4].text == "yes"
