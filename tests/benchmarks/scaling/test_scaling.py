"""The study of scaling: fits on curves whose law is known, its cells, a run and its report."""

import dataclasses
import math

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.newton import newton
from benchmarks.newton.grid import Grid
from benchmarks.scaling import curves
from benchmarks.scaling.axes import shape
from benchmarks.scaling.curves import Point
from benchmarks.scaling.scaling import STUDY, Scaling
from orbits.runs.result import Case, Metric, Result
from tests.benchmarks.runs import finished

pytestmark = pytest.mark.full

STEPS = (50, 110, 240, 510, 1100, 2400)


def trainings(missed, seeds=(0, 1, 2), heads=(1, 2, 4), noise=0.0):
    """Return trainings whose error is a function of steps and heads; FLOPs are their product."""
    rng = np.random.default_rng(0)
    return [
        Point(
            "softmax", seed, steps, width, 0,
            {
                "missed": missed(steps, width) * math.exp(noise * rng.normal()),
                "flops": float(steps * width),
            },
        )
        for seed in seeds for steps in STEPS for width in heads
    ]  # fmt: skip


def test_a_power_law_is_found_without_a_bend():
    found = curves.fits(trainings(lambda s, w: 3 * s**-0.3 / w), "steps", "missed")
    assert set(found) == {("softmax", width, 0) for width in (1, 2, 4)}
    each = found["softmax", 2, 0]
    np.testing.assert_allclose(each.exponents, -0.3, atol=1e-9)
    np.testing.assert_allclose(each.bends, 0, atol=1e-9)
    assert each.span == pytest.approx(math.log10(48))
    assert each.at(10_000).value == pytest.approx(1.5 * 10_000**-0.3)


def test_a_floor_shows_as_a_bend():
    found = curves.fits(trainings(lambda s, w: s**-0.3 + 0.1), "steps", "missed")
    assert min(found["softmax", 1, 0].bends) > 0.005


def test_intervals_of_exponents_cover_over_seeds():
    inside = 0
    for trial in range(200):
        rng = np.random.default_rng(trial)
        seeds = [[(s, s**-0.3 * math.exp(0.05 * rng.normal())) for s in STEPS] for _ in range(3)]
        each = curves.fit(seeds)
        inside += each.exponent.low <= -0.3 <= each.exponent.high
    assert 0.9 < inside / 200 < 0.99


def test_two_seeds_have_no_interval_and_two_points_no_law():
    assert curves.fit([[(1, 1), (2, 0.9), (4, 0.7)]] * 2).exponent is None
    assert curves.fit([[(1, 1), (2, 0.9), (4, 0.7)]] * 2).at(8) is None
    assert curves.fit([[(1, 1), (2, 0.9)]] * 3) is None


def test_the_compute_optimal_line_takes_the_cheapest_of_equals():
    # The wider model is better for each step and dearer: both are on the frontier in part.
    found = trainings(lambda s, w: s**-0.4 * w**-0.8)
    kept = curves.best(found, "softmax", "missed")[0]
    values = [value for _, value in kept]
    assert values == sorted(values, reverse=True)
    undercut = [
        (p.metrics["flops"], p.metrics["missed"])
        for p in found
        if p.seed == 0 and any(f < p.metrics["flops"] and v <= p.metrics["missed"] for f, v in kept)
    ]
    assert not set(undercut) & set(kept)
    line = curves.frontier(found, "missed")["softmax"]
    assert -0.8 < line.exponent.value < -0.4


def test_a_compute_optimal_line_of_noise_does_not_fall():
    """The attack: to keep what no cheaper training undercuts makes any noise fall."""
    found = trainings(lambda s, w: 1.0, seeds=range(20), noise=0.3)
    kept = curves.best(found, "softmax", "missed")
    assert len({len(pairs) for pairs in kept.values()}) == 1, "all seeds at the same places"
    one = trainings(lambda s, w: 1.0, seeds=range(20), heads=(2,), noise=0.3)
    _, low, high = curves.frontier(one, "missed")["softmax"].exponent
    assert low < 0 < high


def test_an_end_of_the_grid_is_no_exponent():
    trained = trainings(lambda s, w: 3 * s**-0.3, heads=(2,))
    for point in trained:
        lost = point.seed == 1 and point.steps == STEPS[0]
        point.metrics["exponent_within"] = -5.9 if lost else -2.0
        point.metrics["exponent_closer"] = -1.9
    found = records(trained)
    for one, point in zip(found, trained, strict=True):
        one.metrics.update({k: Metric(point.metrics[k]) for k in curves.EXPONENTS})
    assert "by no power and r^-1.90 with" in STUDY.sentences(found)[-1]
    table = STUDY.tables(found)[1]
    assert "no power in 1 of 3" in {box.text for box in table.rows[0]}


def test_data_that_never_end_have_no_place_on_a_data_axis():
    found = [
        Point("softmax", seed, 10, 2, n, {"missed": 1 / (n or 5), "flops": 1.0})
        for seed in (0, 1, 2) for n in (0, 10, 100, 1000)
    ]  # fmt: skip
    (each,) = curves.fits(found, "sequences", "missed").values()
    np.testing.assert_allclose(each.exponents, -1)


def record(variant, arm, missed, flops, seed=None, steps=0, heads=0, sequences=0):
    case = Case(
        "scaling", curves.CURVE, variant, arm, seed,
        setting={"steps": steps, "heads": heads, "sequences": sequences},
    )  # fmt: skip
    metrics = {"missed": Metric(missed), "flops": Metric(flops)}
    return Result(case, "ok", metrics=metrics)


def records(points):
    return [
        record(
            "softmax", "pretraining", point.metrics["missed"], 1e9 * point.metrics["flops"],
            point.seed, point.steps, point.heads,
        )
        for point in points
    ]  # fmt: skip


def test_the_verdict_and_its_rows_are_of_compute():
    trained = records(trainings(lambda s, w: 3 * s**-0.3 * w**-0.2, noise=0.05))
    for result in trained:
        for name in ("exponent_within", "exponent_closer"):
            result.metrics[name] = Metric(-2.0)
    assert STUDY.sentences(trained)[0].startswith("More compute, at the best width for each")
    table = STUDY.tables(trained)[0]
    assert {table.rows[place][3].text for place in table.front} == {"compute"}


def test_trainings_of_equal_compute_are_told_apart_by_their_data():
    trained = []
    for seed in range(3):
        ends = (10, 1.0, 0.0), (100, 0.1, -1.0), (1000, 0.01, -2.0), (0, 0.005, -2.5)
        for n, missed, exponent in ends:
            one = record("softmax", "pretraining", missed, 1e9, seed, 50, 2, n)
            one.metrics.update(
                dict.fromkeys(("exponent_within", "exponent_closer"), Metric(exponent))
            )
            trained.append(one)
    verdict, law = STUDY.sentences(trained)
    assert "falls from 1.000 with 10 sequences to 0.010 with 1,000, as sequences^n" in verdict
    assert "n = -1.00 [-1.00, -1.00]" in verdict
    assert verdict.endswith("; with new ones at every step it is 0.005.")
    assert "by r^0.00 and r^0.00 with 10 sequences, by r^-2.50 and r^-2.50 with new" in law


def examined(score, axis, places):
    """Return world models and the exam of their heads, a function of the place on an axis."""
    found = []
    for seed in range(3):
        for place in places:
            point = {"steps": 50, "heads": 2, "sequences": 0, axis: place}
            one = record("softmax", "pretraining", 0.5, 1e9 * (place or 1), seed, **point)
            one.metrics.update(dict.fromkeys(("exponent_within", "exponent_closer"), Metric(-2.0)))
            case = Case("scaling", curves.EXAM, "softmax", "pretrained", seed, setting=point)
            value = Metric(score(place) * (1 + 0.001 * seed))
            found += [one, Result(case, "ok", metrics={"exam": value})]
    return found


@pytest.mark.parametrize(
    ("axis", "places", "said"),
    [
        ("steps", (10, 100, 1000), "2 heads, new sequences: {} from 10.010 after 10 steps to 0.1"),
        ("heads", (1, 2, 4), "50 steps, new sequences: {} from 100.100 with 1 head to 25.025 with"),
        ("heads", (0.5, 1, 2), "50 steps, new sequences: {} from 200.200 with 0.5 heads to 50.050"),
        ("sequences", (10, 100, 1000, 0), "50 steps, 2 heads: {} from 10.010 with 10 sequences"),
    ],
)
def test_the_exam_comes_first_along_what_is_varied(axis, places, said, tmp_path):
    results = examined(lambda place: 100 / (place or 1000), axis, places)
    words = "the exam of heads on it, in times the causal ceiling, falls"
    first = STUDY.sentences(results)[0]
    assert said.format(words) in first
    assert first.endswith("with new ones at every step it is 0.100.") == (axis == "sequences")
    exam, missed = STUDY.figures(results, tmp_path)
    assert "Exam of force heads" in exam.caption
    assert "causal ceiling" in exam.caption
    assert exam.images[0].name == "scaling_exam.png"
    assert missed.images[0].name == "scaling.png"
    drawing = exam.images[0].with_suffix(".svg").read_text()
    marks = {"steps": "FLOPs of pre-training", "heads": ">2<", "sequences": ">1,000<"}
    assert marks[axis] in drawing
    assert (">new" in drawing, "FLOPs" in drawing) == (False, axis == "steps")


def test_the_exams_compute_counts_the_training_of_its_head(tmp_path):
    """Their training costs more here than the world models'."""
    results = []
    for heads in (1, 2):
        for steps in (10, 100, 1000):
            results += examined(lambda place, w=heads: 50 / place**0.5 / w, "steps", (steps,))
            for one in results[-6:]:
                one.case.setting["heads"] = heads
            place = {"steps": steps, "heads": heads, "sequences": 0}
            case = Case("scaling", curves.HEAD, "softmax", "pretrained", setting=place)
            results.append(Result(case, "ok", metrics={"flops": Metric(1e12)}))
    (line,) = curves.frontier(curves.points(results), "exam").values()
    assert line.first[0] == pytest.approx(1e12 + 1e10)
    assert line.last[0] == pytest.approx(2e12)
    said = STUDY.sentences(results)
    assert any(
        "brings the exam of heads on softmax, whose own training is counted" in x for x in said
    )
    (caption,) = (table.caption for table in STUDY.tables(results) if table.title == "Power laws")
    assert caption.endswith("Those of the exam count the training of its head, too.")
    exam, missed = STUDY.figures(results, tmp_path)
    assert "against FLOPs of pre-training and of the head's training" in exam.caption
    assert "against FLOPs of pre-training." in missed.caption
    uncounted = [result for result in results if result.case.kind != curves.HEAD]
    assert not curves.frontier(curves.points(uncounted), "exam")


def test_an_exam_without_a_trend_is_said_to_show_none():
    results = examined(lambda place: 10 + (place == 100), "steps", (10, 100, 1000))
    first = STUDY.sentences(results)[0]
    assert "goes from 10.010 after 10 steps to 10.010 after 1,000" in first
    assert first.endswith("so no trend is shown.")


def test_the_line_of_compute_leads_to_the_larger_preset_and_what_speaks_against_it_is_said():
    trained = trainings(lambda s, w: 2 * s**-0.6 + 0.1, heads=(2,), noise=0.01)
    found = records(trained)
    for one in found:
        one.metrics.update(dict.fromkeys(curves.EXPONENTS, Metric(-2.0)))
    plan = Case("scaling", curves.PLAN, "softmax", "gpu", setting={})
    target = Result(plan, "ok", metrics={"flops": Metric(5e14), "missed": Metric(0.5)})
    fit = record("orbit fit", "ceiling", 0.06, 1.0)
    other = dataclasses.replace(target, case=dataclasses.replace(plan, variant="lazy"))
    assert not any("extrapolated" in x for x in STUDY.sentences([*found, other, fit]))
    (said,) = (x for x in STUDY.sentences([*found, target, fit]) if "extrapolated" in x)
    assert "2.0 decades to the training of preset gpu (5e+14 FLOPs), gives 0.0" in said
    assert "the line flattens already; even an orbit fit, which is given the law, misses" in said
    exams = examined(lambda place: 100 / place, "steps", (10, 100, 1000))
    assert not any("extrapolated" in x and "exam" in x for x in STUDY.sentences([*exams, target]))


def test_an_exam_that_rises_ever_faster_is_said_to_steepen():
    results = examined(lambda place: place**0.1 * (1 + place / 1000), "steps", (10, 50, 300, 2000))
    first = STUDY.sentences(results)[0]
    assert " rises from " in first
    assert "; it steepens (bend 0." in first


def test_attentions_are_compared_where_each_has_most_steps():
    trained = [
        record(variant, "pretraining", missed + 0.01 * seed, 1.0, seed, steps, 2)
        for missed, variant in enumerate(("softmax", "lssar p=15", "lazy"), 1)
        for seed in range(3) for steps in (50, 2400)
    ]  # fmt: skip
    table, (claim,) = STUDY.all_at_once(trained)
    assert [row[0].text for row in table.rows] == [
        "the share of the kick missed after 2,400 steps, 2 heads wide"
    ]
    assert claim.endswith("all 3 at once differ (p 0.028).")


def test_the_figure_names_every_line_at_its_end(tmp_path):
    trained = records(trainings(lambda s, w: 3 * s**-0.3 * w**-0.2, noise=0.05))
    results = [*trained, record("nearest training orbit", "control", 0.4, 1.0)]
    results.append(record("orbit fit", "ceiling", 0.06, 1.0))
    (picture,) = STUDY.figures(results, tmp_path)
    drawing = picture.images[0].with_suffix(".svg").read_text()
    names = ("softmax, 1 head", "softmax, 4 heads", "softmax, best widths, fitted", "orbit fit")
    assert all(f">{name}</text>" in drawing for name in names)
    assert STUDY.figures(results[-1:], tmp_path) == []


@pytest.mark.full
def test_the_flagships_world_models_are_taken_at_their_addresses():
    settings = STUDY.settings("small")
    found = {cell.key for cell in STUDY.cells(settings)}
    flagship = newton.STUDY.settings("small", attention=("softmax",), seeds=(0, 1, 2))
    own = list(Grid(flagship).world_models.values())
    assert len(own) == 3
    assert {cell.key for cell in own} <= found


def test_heads_and_exams_are_added_where_labels_are_given():
    settings = Scaling(steps=(50, 1100), heads=(2,), seeds=(0,), labels=(100,))
    cells = list(STUDY.cells(settings))
    exams = [x for x in cells if x.case.study == "scaling" and x.case.kind == "exam"]
    assert [x.case.setting["steps"] for x in exams] == [50, 1100]
    priced = [x for x in cells if x.case.kind == curves.HEAD]
    assert [x.case.setting["steps"] for x in priced] == [50, 1100]
    assert all(x.arguments["flops"] > 1e11 for x in priced)
    keys = [cell.key for cell in cells]
    for number, cell in enumerate(cells):
        assert {needed.key for needed in cell.needs.values()} <= set(keys[:number])


def test_each_attention_has_the_preset_that_it_is_extrapolated_to():
    settings = Scaling(steps=(50,), heads=(1,), seeds=(0,), attention=("softmax", "lazy"))
    planned = [x for x in STUDY.cells(settings) if x.case.kind == curves.PLAN]
    assert [x.case.variant for x in planned] == ["softmax", "lazy"]
    lazy, softmax = (x.arguments["parameters"] for x in reversed(planned))
    assert lazy > softmax > 1e7


def test_a_fraction_of_a_head_is_a_narrower_one():
    (model,) = (
        cell.arguments["job"]["model"]
        for cell in STUDY.cells(Scaling(steps=(50,), heads=(0.5,), seeds=(0,)))
        if cell.case.arm == "pretraining" and "job" in cell.arguments
    )
    assert (model["n_head"], model["head_dim"]) == (1, 16)
    assert shape(1, 32) == (1, 32)
    assert shape(3, 32) == (3, 32)
    assert shape(0.25, 32) == (1, 8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": ()}, "steps must not be empty"),
        ({"heads": (0,)}, "heads must be whole numbers"),
        ({"heads": (1.5,)}, "such as 0.5; got 1.5"),
        ({"heads": (math.inf,)}, "got inf"),
        ({"heads": (0.45,)}, "even number of its 32 channels"),
        ({"labels": (1,)}, "label budget"),
        ({"predict": "large"}, "choose from"),
        ({"recipe": "paper"}, "identifiable"),
    ],
)
def test_bad_settings_are_refused_before_any_work(settings, message):
    with pytest.raises(ValueError, match=message):
        list(STUDY.cells(Scaling(**settings)))


@pytest.mark.full
def test_a_run_is_measured_and_reported(tmp_path):
    out = tmp_path / "scaling"
    main(["run", "scaling", "--preset", "tiny", "--executor", "here", "--out", str(out)])
    results = finished(out)
    measured = [x for x in results if x.case.kind == "curve" and x.case.arm == "pretraining"]
    assert len(measured) == 6
    for result in measured:
        assert 0 < result.value("missed") < 10
        assert {"nll", "exponent_within", "exponent_closer", "flops"} <= set(result.metrics)
    fitted = curves.controls(results)["orbit fit"]
    assert fitted.value("missed") < 0.3
    main(["report", str(out)])
    page = (out / "report.md").read_text("utf-8")
    assert "the share of the kick that is missed goes from" in page
    assert "nearest training orbit" in page
    assert (out / "figures" / "scaling.png").stat().st_size > 5000
