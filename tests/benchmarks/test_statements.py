"""What a report says of its rows: which pairs differ, from how many seeds, from which trainings."""

import pytest

from benchmarks import next_points, report
from symreg.leaderboard import rows, to_markdown
from tests.symreg import written_lines


def line(kind="predictor", model="softmax", **more):
    return written_lines.line(kind, model, **{"metrics": {}, "manifest": {"inputs": {}}} | more)


def trained(arm="pretrained", m1=1.0, seeds=(0, 1, 2), model="softmax", **more):
    metrics = {
        "r2_log": 0.99,
        "exponents": {"r": [-2, -2.1, -1.9], "m1": [m1, m1 - 0.1, m1 + 0.1], "m2": [1, 0.9, 1.1]},
        "constant": [39.0, 38.0, 40.0],
    }
    return [line(model=model, arm=arm, seed=s, metrics=metrics | more) for s in seeds]


def failed(**what):
    return line(status="failed", metrics={}, **what)


def test_pre_training_is_compared_with_scratch_and_all_comparisons_are_counted():
    lines = [*trained(), *trained("scratch", m1=0.7), *trained(model="lssa")]
    said = report.comparisons(rows(lines))
    assert said == [
        "softmax, 300 labels, pretrained and scratch: intervals are disjoint in m1 (3 seeds and "
        "3 seeds; seeds alone would separate a metric in 10% of comparisons).",
        "lssa and softmax, pretrained, 300 labels: no difference is shown (3 seeds and 3 seeds; "
        "all intervals overlap).",
        "Comparisons made: 8, of m1, m2, r, constant; where many are made, some intervals are "
        "disjoint by chance.",
    ]


@pytest.mark.parametrize("lost", [1, 2])
def test_nothing_is_claimed_from_the_trainings_that_did_not_fail(lost):
    lines = [*trained(), *trained("scratch", m1=0.7, seeds=(0, 1, 2))]
    lines += [failed(arm="scratch", seed=3 + n) for n in range(lost)]
    (said,) = report.comparisons(rows(lines))
    assert f"no claim (3 seeds and 3 seeds, {lost} failed;" in said
    said = report.answers(rows(lines), "newton")
    assert any(f"softmax, scratch, 300 labels (3 seeds, {lost} failed)" in x for x in said)


def test_world_models_that_failed_are_counted():
    metrics = {name: [1.0, 0.9, 1.1] for name in ("nll", "planet_error", "star_error")}
    asked = {"kind": "next point", "arm": "world model"}
    lines = [line(seed=seed, metrics=metrics, **asked) for seed in range(3)]
    lines.append(failed(seed=3, **asked))
    (row,) = next_points.rows(lines)
    assert (row.seeds, row.failed) == (3, 1)
    assert next_points.table([row]).cells[1][1] == "3, 1 failed"


def test_lines_of_several_trainings_of_one_world_model_are_told():
    def of(digest, arm="pretrained", **what):
        return line(arm=arm, manifest={"inputs": {"pretrained": digest}}, **what)

    alike = [of("a"), of("a", arm="world model"), of("b", seed=1), of("c", arm="pretrained on x")]
    assert not report.mixed_backbones(alike)
    (said,) = report.mixed_backbones([*alike, of("d", model="lssa"), of("e", model="lssa")])
    assert said.startswith("The lines of lssa are of more than one training")


def test_the_cosine_is_in_the_table():
    lines = [x for c, s in ((0.98, 0), (0.99, 1)) for x in trained(seeds=(s,), cosine=c)]
    assert rows(lines)[0].cosine == pytest.approx((0.985, 0.98, 0.99))
    assert "| 0.9850 (0.9800..0.9900) |" in to_markdown(rows(lines), "newton", lines)
    assert rows(trained())[0].cosine is None
