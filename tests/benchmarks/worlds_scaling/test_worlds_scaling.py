"""The study of law inference by size: gains on points that are known, its cells, and a run."""

import dataclasses
import math
from pathlib import Path

import pytest

from benchmarks.worlds import grid as worlds_grid
from benchmarks.worlds import worlds
from benchmarks.worlds.names import CEILING, MIXTURE, TABLE
from benchmarks.worlds.scores import TRUTH
from benchmarks.worlds_scaling import points
from benchmarks.worlds_scaling.worlds_scaling import STUDY, WorldsScaling
from orbits.runs import reuse
from orbits.runs.palette import own_colour
from orbits.runs.result import Case, Metric, Result
from tests.benchmarks.runs import finished

KEPT = Path(__file__).parents[3] / "benchmarks/results/worlds-small"
STEPS = (100, 1000, 10_000)
WORLDS = (-2.5, -2.0, -1.5)


def answers(study, variant, arm, share, seed=None, place=None, flat=None, bias=None):
    """Return what one training or reference answers, whole and at half the time step."""
    setting = dict(zip(points.AXES, place or (), strict=bool(place)))
    made = []
    for half in (False, True):
        values = {"S": share / (10 if half else 1), "error@trained": 0.5, "nll@trained": 2.0}
        values |= {} if bias is None else {"bias@-2": bias, "error@held-out": 0.5}
        middle = -2.0 + (0 if flat is None else flat)
        values |= {f"exponent@{x:g}": middle + share * (x + 2) for x in WORLDS}
        case = Case(
            study, "truth" if variant == TRUTH else "worlds", variant, arm, seed,
            setting={**setting, "prompt": 12, **({"time step": "half"} if half else {})},
        )  # fmt: skip
        made.append(Result(case, "ok", metrics={k: Metric(v) for k, v in values.items()}))
    return made


def run(
    share,
    flat=None,
    seeds=(0, 1, 2),
    places=tuple((steps, 2, 0, 64) for steps in STEPS),
    variant="softmax",
):
    """Return a run in which S is a function of steps and seed."""
    results = answers("worlds", TRUTH, "-", 1.0) + answers("worlds", TABLE, "control", 1.0)
    results += answers("worlds", CEILING, "ceiling", 1.1)
    for place in places:
        for seed in seeds:
            results += answers(
                "worlds_scaling", variant, MIXTURE, share(place, seed), seed, place, flat
            )
    return results


def test_the_gain_is_that_of_ten_times_as_much():
    results = run(lambda place, seed: 0.1 + 0.2 * math.log10(place[0] / 100) + 0.01 * seed)
    found = points.points(results)
    (gain,) = points.gains(found, "steps")
    assert gain.gains == pytest.approx([0.2] * 3)
    assert not points.gains(found, "heads")
    said = STUDY.sentences(results)
    assert "S goes from 0.11" in said[0]
    assert "ten times the steps add 0.20 [0.20, 0.20]" in said[0]
    assert any("table of training orbits" in line for line in said)
    assert [table.title for table in STUDY.tables(results) if table.rows] == [
        "Gain of S for ten times as much",
        "Law inferred in context: S",
        "Without a training on the mixture",
    ]


def priced(results, flops):
    """Return a run with the FLOPs of each of its points, a function of the place."""
    found = {point.place: point.variant for point in points.points(results)}
    return results + [
        Result(
            Case(
                "worlds_scaling", points.COST, variant, MIXTURE,
                setting=dict(zip(points.AXES, place, strict=True)),
            ),
            "ok",
            metrics={"flops": Metric(flops(place)), "parameters": Metric(1.0)},
        )
        for place, variant in found.items()
    ]  # fmt: skip


def test_the_line_of_compute_goes_through_the_widths_that_are_worth_their_price(tmp_path):
    """Of two widths, the wide one has more S for each step, and less for each FLOP at first."""
    share = {(100, 1): 0.1, (1000, 1): 0.3, (10_000, 1): 0.35, (100, 2): 0.2, (1000, 2): 0.5}
    places = tuple((steps, heads, 0, 64) for steps, heads in share)
    results = run(lambda place, seed: share[place[:2]] + 0.01 * seed, places=places)
    results = priced(results, lambda place: 1e9 * place[0] * 20 ** (place[1] - 1))
    (gain,) = points.gains(points.points(results), points.COMPUTE)
    # 1000 steps of one head are cheaper than 100 of two, and better; 10,000 buy less than two do.
    assert [point.place[:2] for point in gain.points] == [
        (100, 1),
        (1000, 1),
        (10_000, 1),
        (1000, 2),
    ]
    first, *_ = STUDY.sentences(results)
    assert first.startswith("softmax, the best widths, new sequences, 64 laws: S goes from 0.11")
    assert "with 1e+11 FLOPs to 0.51" in first
    assert "with 2e+13; ten times the compute adds 0.1" in first
    table = STUDY.tables(results)[0]
    assert [row[1].text for row in table.rows] == ["steps", "compute"]
    assert table.caption.endswith("by means, for fewer FLOPs.")
    _, compute = STUDY.figures(results, tmp_path)
    assert "against the FLOPs of the training" in compute.caption
    drawn = compute.images[0].with_suffix(".svg").read_text()
    assert all(f">{name}</text>" in drawn for name in ("softmax, 1 head", "softmax, 2 heads"))


def test_one_width_has_no_line_of_compute(tmp_path):
    results = priced(run(lambda place, seed: 0.1 * seed), lambda place: 1e9 * place[0])
    assert not points.gains(points.points(results), points.COMPUTE)
    assert len(STUDY.figures(results, tmp_path)) == 1


def test_what_has_most_is_told_at_half_the_step_and_at_laws_held_out_beside_a_table():
    results = answers("worlds", TRUTH, "-", 1.0)
    results += answers("worlds", TABLE, "control", 1.0, bias=0.25)
    for seed in (0, 1, 2):
        for heads in (1, 2):
            results += answers(
                "worlds_scaling", "softmax", MIXTURE, 0.3 * heads, seed, (9, heads, 0, 4),
                bias=0.01 * heads,
            )  # fmt: skip
    said = STUDY.sentences(results)
    assert "with 9 steps, 2 heads, new sequences, 4 laws: 0.60" in said[0]
    assert "at half the time step, which no training had, 0.06" in said[0]
    assert said[1].startswith(
        "Leak test: half the time step moves the exponents of softmax (9 steps, 2 heads"
    )
    assert "by: 0.02 [0.02, 0.02] at -2, 0.50 [0.50, 0.50] AU; table of training" in said[2]
    assert said[2].endswith("orbits 0.25 at -2, 0.50 AU.")
    held = next(table for table in STUDY.tables(results) if table.title.startswith("Laws held"))
    assert [row[5].text for row in held.rows] == ["0.01", "0.02", "0.25"]


def test_the_figure_names_lines_ceiling_and_table(tmp_path):
    (picture,) = STUDY.figures(run(lambda place, seed: 0.1 * seed), tmp_path)
    assert "against the steps of the training" in picture.caption
    drawn = picture.images[0].with_suffix(".svg").read_text()
    assert all(f">{name}</text>" in drawn for name in ("softmax", CEILING, TABLE))


def test_attentions_have_the_colours_that_they_have_everywhere(tmp_path):
    results = run(lambda place, seed: 0.1 * seed, variant="lssar p=15")
    (picture,) = STUDY.figures(results, tmp_path)
    drawn = picture.images[0].with_suffix(".svg").read_text().lower()
    assert own_colour("lssar p=15").lower() in drawn
    assert own_colour("softmax").lower() not in drawn


def test_seeds_that_disagree_show_no_gain():
    (line, *_) = STUDY.sentences(run(lambda place, seed: 0.3 * (seed - 1) * math.log10(place[0])))
    assert "so no gain is shown" in line


def test_new_sequences_have_no_place_on_the_axis_of_sequences():
    places = tuple((2200, 2, n, 64) for n in (1000, 10_000, 100_000, 0))
    results = run(lambda place, seed: 0.2 * math.log10(place[2] or 3), places=places)
    (gain,) = points.gains(points.points(results), "sequences")
    assert [point.at("sequences") for point in gain.points] == [1000, 10_000, 100_000]
    assert gain.gains == pytest.approx([0.2] * 3)
    assert any(line.startswith("softmax with new sequences") for line in STUDY.sentences(results))


def test_what_obeys_no_law_has_no_share():
    results = run(lambda place, seed: 1.0, flat=3.0)
    assert not any(point.has_law for point in points.points(results))
    said = STUDY.sentences(results)
    assert said[0].startswith("Continuations obey no power law of an attraction")
    table = next(table for table in STUDY.tables(results) if table.title.startswith("Law inferred"))
    assert {row[5].text for row in table.rows} == {"no law"}


def test_two_seeds_have_no_interval():
    results = run(lambda place, seed: 0.2 * math.log10(place[0]), seeds=(0, 1))
    assert "ten times the steps add 0.20, 0.20" in STUDY.sentences(results)[0]


def test_trainings_have_the_addresses_of_worlds():
    own = worlds.STUDY.settings("small")
    there = {cell.key for cell in worlds_grid.cells(worlds.STUDY, own) if cell.case.arm == MIXTURE}
    settings = WorldsScaling(steps=(own.steps,), heads=(own.n_head,))
    cells = STUDY.cells(settings)
    shared = [cell for cell in cells if cell.case.kind == "world model"]
    assert len(shared) == 3
    assert {cell.key for cell in shared} <= there
    assert len({cell.key for cell in cells}) == len(cells)


def test_kept_world_models_of_worlds_serve(tmp_path):
    """Their weights are read, by the answers that are still to be computed."""
    cells = STUDY.cells(STUDY.settings("width", heads=(2,)))
    left = reuse.plan(cells, [KEPT], tmp_path, STUDY.restore).left
    assert {cell.case.kind for cell in left} == {"truth", "worlds", points.COST}


def test_few_sequences_change_the_address_and_new_ones_do_not():
    def keys(**changes):
        settings = dataclasses.replace(WorldsScaling(steps=(140,), seeds=(0,)), **changes)
        return {c.key for c in STUDY.cells(settings) if c.case.kind == "world model"}

    assert keys() == keys(sequences=(0,))
    assert not keys() & keys(sequences=(1000,))
    assert len(keys(sequences=(0, 1000), laws=(8, 64))) == 4


def test_a_size_that_cannot_be_is_refused():
    for wrong in ({"steps": (1,)}, {"heads": (0,)}, {"laws": ()}, {"sequences": (-1,)}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            STUDY.cells(WorldsScaling(**wrong))


def test_a_time_step_may_tell_the_law():
    def keys(protocol):
        settings = WorldsScaling(steps=(140,), seeds=(0,), protocol=protocol)
        return {cell.key for cell in STUDY.cells(settings) if cell.case.arm == MIXTURE}

    neutral, telling = keys("neutral_step"), keys("identifiable")
    assert len(neutral) == len(telling) > 0
    assert not neutral & telling
    with pytest.raises(ValueError, match="protocol"):
        WorldsScaling(protocol="fixed")


def test_a_fraction_of_a_head_is_a_narrower_one():
    settings = WorldsScaling(steps=(140,), heads=(0.5, 2), seeds=(0,))
    cells = [cell for cell in STUDY.cells(settings) if cell.case.kind == "world model"]
    models = [cell.arguments["job"]["model"] for cell in cells]
    assert [(model["n_head"], model["head_dim"]) for model in models] == [(1, 16), (2, 32)]


@pytest.mark.full
def test_a_run_is_finished_and_reported(tiny_run):
    out = tiny_run("worlds_scaling", "--steps", "3,6", "--heads", "1", "--sequences", "0,40")
    results = finished(out)
    trained = [x for x in results if x.case.arm == MIXTURE and x.case.kind == "worlds"]
    assert {(x.case.setting["steps"], x.case.setting["sequences"]) for x in trained} == {
        (steps, sequences) for steps in (3, 6) for sequences in (0, 40)
    }
    assert len(points.points(results)) == 4
    assert STUDY.sentences(results)
