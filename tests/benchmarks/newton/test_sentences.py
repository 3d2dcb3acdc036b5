"""What a report says of its rows: from how many seeds, from which trainings."""

import pytest

from benchmarks.newton import sentences
from benchmarks.newton.exam_rows import Exam
from benchmarks.newton.headline import in_the_box
from benchmarks.newton.world_models import continues, world_models
from orbits.runs.result import Case, Metric, Result
from symreg.leaderboard import rows
from symreg.leaderboard.tables import contestants


def result(kind="forces", variant="softmax", arm="pretrained", seed=0, labels=300, **more):
    case = Case("newton", kind, variant, arm, seed, "newton", "fixed", {"labels": labels})
    return Result(case, **{"cell": f"{kind} {variant} {arm} {seed}", **more})


def trained(arm="pretrained", m1=1.0, seeds=(0, 1, 2), variant="softmax", **more):
    metrics = {
        "r2_log": Metric(0.99),
        "exponent_r": Metric(-2, -2.1, -1.9),
        "exponent_m1": Metric(m1, m1 - 0.1, m1 + 0.1),
        "exponent_m2": Metric(1, 0.9, 1.1),
        "constant": Metric(39.0, 38.0, 40.0),
    }
    return [result(variant=variant, arm=arm, seed=seed, metrics=metrics | more) for seed in seeds]


def failed(**what):
    return result(status="failed", error="ValueError: none", **what)


def test_trainings_that_failed_are_told():
    found = [*trained(), failed(seed=3)]
    (said,) = sentences.answers(rows(found), "newton")
    assert "softmax, pretrained, 300 labels (3 seeds, 1 failed)" in said


def test_world_models_that_failed_are_counted():
    names = ("nll", "planet_error", "star_error")
    metrics = {name: Metric(1.0, 0.9, 1.1) for name in names}
    what = {"kind": "next point", "arm": "world model"}
    found = [result(seed=seed, metrics=metrics, **what) for seed in range(3)]
    table = world_models([*found, failed(seed=3, **what)])
    assert [row[1].text for row in table.rows] == ["3, 1 failed"]


def test_world_models_are_ordered_by_likelihood_and_references_by_error():
    def asked(variant, nll, error, seed):
        metrics = {"planet_error": Metric(error, 0.0, 9.0), "star_error": Metric(error)}
        metrics |= {} if nll is None else {"nll": Metric(nll)}
        return result("next point", variant, "control", seed, None, metrics=metrics)

    found = [asked("b", 2.0, 0.1, 0), asked("a", 1.0, 0.3, 0), asked("b", 4.0, 0.1, 1)]
    found += [asked("far", None, 5.0, None), asked("near", None, 0.5, None)]
    rows = [[value.text for value in row] for row in world_models(found).rows]
    assert rows == [
        ["a", "1", "1", "0.3", "0.3"],
        ["b", "2", "3", "0.1", "0.1"],
        ["near", "reference", "", "0.5", "0.5"],
        ["far", "reference", "", "5", "5"],
    ]


def test_the_law_of_continuations_has_a_column_and_a_sentence_beside_controls():
    def asked(variant, exponent, seed=None, arm="control"):
        metrics = {"exponent_within": Metric(exponent, exponent - 0.1, exponent + 0.1)}
        return result("continued orbits", variant, arm, seed, None, metrics=metrics)

    found = [asked("softmax", -1.9 - seed / 100, seed, "world model") for seed in range(3)]
    found += [asked("softmax, untrained", 1.2), asked("nearest training orbit", -2.0)]
    found += [asked("true orbit in bins", -1.96)]
    own, controls = continues(found)
    assert own.startswith("softmax continues orbits by r^-1.91 [-1.93, -1.89] along each orbit")
    assert own.endswith("the truth in bins has -1.96 [-2.06, -1.86].")
    assert "softmax, untrained 1.20 [1.10, 1.30]; nearest training orbit -2.00" in controls
    predicted = {"nll": Metric(2.0), "planet_error": Metric(0.1), "star_error": Metric(0.1)}
    old = [result("next point", "softmax", "world model", 0, None, metrics=predicted)]
    table = world_models([*old, *found])
    assert table.columns[-1].heading == "continues by r^"
    assert [row[-1].text for row in table.rows] == ["-1.91", "1.20", "-2.00", "-1.96"]
    assert len(world_models(old).columns) == len(table.columns) - 1, "kept results have no such"
    assert continues(old) == []


@pytest.mark.parametrize("role", ["pretrained/last.ckpt", "pretrained"])
def test_results_of_several_trainings_of_one_world_model_are_told(role):
    def of(digest, arm="pretrained", **what):
        return result(arm=arm, manifest={"inputs": {role: digest}}, **what)

    alike = [of("a"), of("a", arm="world model"), of("b", seed=1), of("c", arm="pretrained on x")]
    assert not sentences.mixed_backbones(alike)
    more = [of("d", variant="lssa"), of("e", variant="lssa")]
    (said,) = sentences.mixed_backbones([*alike, *more])
    assert said.startswith("The results of lssa are of more than one training")


def test_a_restored_world_model_is_the_training_that_it_comes_from():
    trained = {"pretrained/last.ckpt": "a"}
    restored = {"pretrained/last.ckpt": "b", "pretrained/last.ckpt, origin": "a"}
    found = [
        result(arm="pretrained", manifest={"inputs": inputs}) for inputs in (trained, restored)
    ]
    assert not sentences.mixed_backbones(found)


def test_the_cosine_is_in_the_table():
    found = [
        x for c, seed in ((0.98, 0), (0.99, 1)) for x in trained(seeds=(seed,), cosine=Metric(c))
    ]
    (row,) = rows(found)
    assert row.values["cosine"] == {0: 0.98, 1: 0.99}
    assert "| 0.9850 (0.9800, 0.9900) |" in contestants("", [row]).to_markdown()


def test_a_law_that_hides_the_masses_is_told_as_one():
    (said,) = sentences.hidden_masses("m1_over_r2")
    assert said.startswith("Under m1_over_r2 paths show m1 / m2 and neither mass")
    assert sentences.hidden_masses("newton") == sentences.hidden_masses("mond") == []


def test_the_verdict_counts_who_is_near_the_law_and_says_what_was_not_examined():
    table = rows([*trained(), *trained(m1=0.9, variant="lssa")])
    (said,) = sentences.verdict(table, Exam([]), "newton")
    assert said.startswith("In the training box 1 of 2 trained rows with 300 labels have")
    assert "no exam outside the box" in said
    assert sentences.verdict([], Exam([]), "newton") == []
    assert sentences.verdict(table, Exam([]), "yukawa") == [], "it has no exponents to be near to"


def test_a_run_without_an_exam_has_a_headline_of_seven_columns():
    found = [*trained(), failed(variant="lssa")]
    table = in_the_box(rows(found))
    assert [column.heading for column in table.columns][3:] == [
        "exponent of m1",
        "exponent of m2",
        "exponent of r",
        "formulas in the box",
    ]
    texts = [[value.text for value in row] for row in table.rows]
    assert texts[0] == ["softmax", "pretrained, 3", "300", "1", "1", "-2", "-"]
    assert texts[1][3:] == ["-"] * 4, "it failed"
