"""Tables, sentences and figure of few_labels, from made-up results."""

import pytest

from benchmarks.few_labels.few_labels import STUDY
from benchmarks.few_labels.scores import FAILED, groups
from orbits.runs.first_screen import shortened
from orbits.runs.result import Case, Metric, Result
from orbits.runs.study import with_units

GOOD = {0: 0.9, 1: 0.0, 2: 0.88, 3: 0.1}
"""Mean scores with re-weighting: seeds 1 and 3 fail."""
MENDED = {0: 0.91, 1: 0.8, 2: 0.85, 3: 0.2}
"""Without it: seed 1 does not fail any more."""


def result(kind, variant, metrics, arm="-", seed=None, **setting):
    case = Case("few_labels", kind, variant, arm, seed, setting=setting)
    made = Result(case, metrics={name: Metric.of(x) for name, x in metrics.items()})
    return with_units(STUDY, made)


def tuned(variant, arm, seed, label_set, score, stopped):
    shared = {"labels": 100, "label_set": label_set, "lr": 0.003, "steps": 400}
    for asked, value, step in (("last", score, 400), ("stopped", stopped, 75)):
        metrics = {"r2_log": value, "times_ceiling": 9.5, "r2_log_train": 0.99, "step": step}
        yield result("forces", variant, metrics, arm, seed, **shared, asked=asked)


@pytest.fixture
def results():
    found = []
    for seed in GOOD:
        measured = {"entropy@block 1": 2.0 - GOOD[seed], "entropy@block 2": float(seed % 2)}
        found.append(result("world model", "lssar p=15", {"val_nll": 3.0 + seed}, seed=seed))
        found.append(result("attention", "lssar p=15", measured, seed=seed))
        for label_set in (0, 1):
            shift = 0.01 * label_set
            scores = {"with": GOOD[seed] + shift, "without": MENDED[seed] - shift}
            for arm, score in scores.items():
                found += tuned("lssar p=15", arm, seed, label_set, score, score + 0.02)
            found += tuned("softmax", "-", seed, label_set, 0.92 + shift, 0.92)
    for label_set in (0, 1):
        metrics = {"r2_log": 0.96 + 0.01 * label_set, "times_ceiling": 18.0}
        found.append(result("forces", "log-linear filter", metrics, "control", label_set=label_set))
    return found


def test_sentences_count_failures_and_what_mends_them(results):
    verdict, failing, stopping, mending, softmax, strongest, baselines = STUDY.sentences(results)
    assert "lssar p=15 2 of 4" in verdict
    assert "without a backbone, log-linear filter has R²" in verdict
    assert failing.startswith("lssar p=15, rate 0.003, 400 steps: 2 of 4 backbones fail")
    assert "seeds 1, 3. R² of all 8 trainings: 0.00, 0.01, 0.10, 0.11, 0.88" in failing
    assert "the widest gap is between 0.11 and 0.88" in failing
    assert (
        "(standard deviation 0.45) 100% lies between backbones and 0% between label sets" in failing
    )
    assert "independent values have 43% and 14% on average" in failing
    assert "0 of these 2 do not fail: seed 1 from 0.01 to 0.03 at steps 75, 75" in stopping
    assert "p = 1 in fine-tuning, rate 0.003, 400 steps: 1 of 4 backbones fail" in mending
    assert "of the 2 that fail re-weighted it mends 1: seed 1 from 0.01 to 0.80" in mending
    assert softmax.startswith("softmax, rate 0.003, 400 steps: 0 of 4 backbones fail")
    assert "Of 3 rank correlations" in strongest
    assert "entropy, block 1 (lssar p=15, rate 0.003, 400 steps): -1.00, exact p 0.083" in strongest
    assert "0.25 after Holm's correction; 4 backbones" in strongest
    assert baselines.endswith("log-linear filter 0.96, 0.97.")


def test_a_first_screen_shows_each_arm_by_its_median_backbone_and_the_baselines(results):
    scores = STUDY.tables(results)[0]
    rows = [[value.text for value in row[:6]] for row in shortened(scores, most=4).rows]
    assert rows == [
        ["lssar p=15", "re-weighted", "0.003", "400", "3", "0.10, 0.11"],
        ["lssar p=15", "p = 1", "0.003", "400", "1", "0.80, 0.79"],
        ["softmax", "-", "0.003", "400", "1", "0.92, 0.93"],
        ["log-linear filter", "-", "-", "-", "-", "0.96, 0.97"],
    ]


def test_tables_show_each_label_set_and_the_baselines(results):
    scores, variance, backbones, order = STUDY.tables(results)
    texts = [[value.text for value in row] for row in scores.rows]
    assert ["lssar p=15", "p = 1", "0.003", "400", "1", "0.80, 0.79"] in [x[:6] for x in texts]
    assert texts[-1][0] == "log-linear filter"
    assert texts[-1][5:] == ["0.96, 0.97", "-", "18.0, 18.0", "-", "-"]
    assert len(variance.rows) == 5, "softmax, stopped, has no variance here"
    assert len(backbones.rows) == 4
    assert [row[4].text for row in order.rows] == [
        "validation loss",
        "entropy, block 1",
        "entropy, block 2",
    ]


def test_the_figure_has_every_arm(results, tmp_path):
    (picture,) = STUDY.figures(results, tmp_path)
    assert picture.images[0].is_file()


def test_failed_and_missing_cells_leave_the_rest(results, tmp_path):
    there = [x for x in results if (x.case.seed, x.case.get("label_set")) != (0, 1)]
    case = Case("few_labels", "forces", "lssar p=15", "with", 9, setting={"label_set": 0})
    there.append(Result(case, "failed", "NonFiniteLoss"))
    failing = STUDY.sentences(there)[1]
    assert "2 of 4 backbones fail" in failing
    assert "R² of all 7 trainings" in failing
    assert STUDY.figures(there, tmp_path)
    assert [len(group.means()) for group in groups(there)] == [4, 4, 4]


def test_nothing_is_said_of_nothing(tmp_path):
    assert STUDY.sentences([]) == STUDY.figures([], tmp_path) == []
    assert not any(table.rows for table in STUDY.tables([]))


def test_a_backbone_fails_below_the_threshold_alone(results):
    (group, *_) = groups(results)
    assert group.failed() == [1, 3]
    assert group.failed("stopped") == [1, 3]
    assert all(group.means()[seed] >= FAILED for seed in (0, 2))
