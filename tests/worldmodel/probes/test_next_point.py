"""The next-point probe: shifts, controls in their known order, the sentence, refusals."""

import dataclasses

import numpy as np
import pytest

from orbits import protocols, shifts
from orbits.implied.one_step import OneStep
from tests.worldmodel.probes.evaluation import evaluate, find, result
from worldmodel.controls.names import CUBIC, FILTER, FIT, IN_BINS, TRUE
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.implied.names import SHIFT
from worldmodel.probes.motion import dots
from worldmodel.probes.motion.held_out import HeldOutSystems
from worldmodel.probes.motion.next_point import BOX, PROBE, _worlds
from worldmodel.probes.probe import STUDY
from worldmodel.probes.settings import Settings

KIND = PROBE.name
SETTINGS = Settings(n_sequences=12, seeds=(0,))


def test_every_shift_is_asked_in_its_own_range():
    worlds = dict(_worlds(protocols.get("identifiable"), 0, 12))
    assert list(worlds) == [BOX, *shifts.names()]
    heavy, box = (worlds[name].world.star_mass for name in ("star_heavier", BOX))
    assert heavy.min() >= 4 >= box.max()
    steps = [worlds[name].batch["dt"] for name in ("double_step", "half_step")]
    assert (steps[0] == 4 * steps[1]).mean() > 0.5, "of systems whose steps both are tokens"


def test_a_world_that_cannot_make_a_shift_leaves_it_out():
    assert set(dict(_worlds(protocols.get("drag"), 0, 12))) == {BOX}


@pytest.fixture
def corner(tmp_path):
    """A file with a shift of one's own."""
    path = tmp_path / "corner.yaml"
    path.write_text("[{name: corner, redraw: {eccentricity: [0.4, 0.6], planet_mass: [0.4, 2]}}]")
    return path


def test_a_shift_of_ones_own_is_asked_and_in_the_address_by_its_content(
    corner, untrained, tmp_path
):
    worlds = dict(_worlds(protocols.get("without_corner"), 0, 12, str(corner)))
    assert list(worlds) == [BOX, *shifts.names(), "corner"]
    asked = worlds["corner"].world
    assert asked.eccentricity.min() >= 0.4
    assert asked.planet_mass.min() >= 0.4
    moved, edited = (tmp_path / place / corner.name for place in "ab")
    for file, text in ((moved, corner.read_text()), (edited, corner.read_text() + "\n# more")):
        file.parent.mkdir()
        file.write_text(text)
    path = str(untrained(protocol_args={"n_points": 24, "n_bins": 512}))
    found = []
    for file in (None, corner, moved, edited):
        shift_file = None if file is None else str(file)
        given = Settings(checkpoints=(path,), probes=(KIND,), shift_file=shift_file)
        (cell,) = STUDY.cells(given)
        found.append((cell.key, STUDY.config(given, "small")["shift_file"]))
    none, first, same, other = found
    assert len({key for key, _ in (none, first, other)}) == 3
    assert first == same, "wherever it lies"
    assert first[1] != other[1], "an edited file is another run"


def test_a_shift_of_ones_own_that_cannot_be_made_is_refused_before_work(untrained, tmp_path):
    far = tmp_path / "far.yaml"
    far.write_text("[{name: far, redraw: {semi_major_axis: [10, 20]}}]")
    given = Settings(probes=(KIND,), shift_file=str(far))
    loaded = Checkpoint.load(untrained(protocol_args={"n_points": 24, "n_bins": 512}))
    assert "leave the bins" in PROBE.refusal(loaded, given)
    missing = Settings(checkpoints=("x",), probes=(KIND,), shift_file="none.yaml")
    with pytest.raises(FileNotFoundError, match=r"none\.yaml"):
        STUDY.check(missing)


@pytest.mark.full
def test_controls_stand_in_their_known_order_and_a_model_has_nats(untrained, corner, tmp_path):
    args = {"n_points": 24, "n_bins": 512}
    given = dataclasses.replace(SETTINGS, shift_file=str(corner))
    results = evaluate(KIND, untrained(protocol_args=args), given, tmp_path)
    assert {x.case.setting[SHIFT] for x in results} == {BOX, *shifts.names(), "corner"}
    for shift in (BOX, "star_heavier", "corner"):
        there = [x for x in results if x.case.setting[SHIFT] == shift]
        missed = {x.case.variant: x.metrics["missed"].value for x in there}
        assert missed[TRUE] == pytest.approx(0, abs=1e-9)
        assert missed[TRUE] < missed[FIT] < missed[CUBIC] < missed["softmax"]
        assert missed[IN_BINS] < missed[CUBIC]
        own = find(there, variant="softmax", arm="pretrained")
        assert own.metrics["nll"].value == pytest.approx(2 * np.log(512), rel=0.02)
        assert "nll" not in find(there, variant=CUBIC).metrics


def test_the_exponent_of_single_steps_is_that_of_all_measures():
    protocol = protocols.get("identifiable")
    test = HeldOutSystems(protocol, protocol.systems(0, "test", np.arange(30)))
    steps, true = OneStep(protocol, test.world, 12), test.batch["coordinates"]
    points = true + 1e-4 * np.sin(np.arange(true.size)).reshape(true.shape)
    both = steps.measured(points, true)
    assert both["exponent_within"] == steps.exponent(points)
    assert both["missed"] == steps.missed(points, true)


def measured(missed, shift, **case):
    return result(kind=KIND, metrics={"missed": missed}, setting={SHIFT: shift}, **case)


def test_the_sentence_names_the_box_and_the_shifts_of_least_and_of_most():
    values = {BOX: 0.4, "star_heavier": 0.41, "closer": 0.8}
    results = [
        measured((value, value - 0.1, value + 0.1), shift, **case)
        for shift, value in values.items()
        for case in ({}, {"variant": FILTER, "arm": "control", "of": "control"})
    ]
    first, second = PROBE.answers(results)
    assert first.startswith("softmax misses 0.40 [0.30, 0.50] of the kick of a step in its")
    assert f"outside it 0.41 [0.31, 0.51] to 0.80 [0.70, 0.90] ({FILTER} 0.40 in" in first
    assert f"least with star of 4 to 8 solar masses, trained up to 4 ({FILTER} 0.41)" in second
    assert second.endswith(f"({FILTER} 0.80).")


def test_a_shift_of_ones_own_has_its_own_sentence_and_a_foreign_world_its_name():
    results = [
        measured((value, value - 0.1, value + 0.1), shift, law="power_1_5", trained_on="newton")
        for shift, value in ((BOX, 0.4), ("closer", 0.8), ("my_corner", 0.1))
    ]
    first, second, own = PROBE.answers(results)
    assert "in the box of its training, in the world of r^-1.5, outside it 0.80" in first
    assert "my corner" not in first + second
    assert own.startswith("softmax misses 0.10 [0.00, 0.20] of it in the shift my corner")


def test_the_figure_has_a_panel_for_each_shift_and_a_line_at_the_filter(tmp_path):
    results = [
        measured(value, shift, variant=variant, arm=arm, seed=0)
        for shift in (BOX, "closer")
        for variant, arm, value in (
            ("softmax", "pretrained", 0.4),
            ("softmax", "untrained", 6.0),
            (FILTER, "control", 0.5),
            (TRUE, "oracle", 0.0),
        )
    ]
    (picture,) = PROBE.draw(results, tmp_path)
    drawing = picture.images[0].with_suffix(".svg").read_text(encoding="utf-8")
    for words in ("in the training box", "closer", "softmax", FILTER, TRUE):
        assert f">{words}<" in drawing
    assert "untrained" not in drawing


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.05, 20, [0.1, 1, 10]),
        (0.2, 4, [0.3, 1, 3]),
        (0.55, 0.78, [0.6, 0.7]),
        (0.414, 0.471, [0.42, 0.44, 0.46]),
    ],
)
def test_a_logarithmic_axis_names_a_few_places(low, high, expected):
    assert dots._places(low, high) == pytest.approx(expected)


def test_controls_of_several_training_worlds_stand_apart(tmp_path):
    results = [
        measured(value, BOX, variant=variant, arm=arm, seed=0, trained_on=law)
        for law, missed in (("newton", 0.5), ("power_1_5", 0.9))
        for variant, arm, value in (
            ("softmax", "pretrained", 0.4),
            (FILTER, "control", missed),
            (TRUE, "oracle", 0.0),
        )
    ]
    (picture,) = PROBE.draw(results, tmp_path)
    drawing = picture.images[0].with_suffix(".svg").read_text(encoding="utf-8")
    assert f">{FILTER}, r^-2<" in drawing
    assert f">{FILTER}, r^-1.5<" in drawing
    assert drawing.count(f">{TRUE}<") == 1
    for sentence, value in zip(PROBE.answers(results), ("0.50", "0.90"), strict=True):
        assert f"{FILTER} {value}" in sentence


def test_a_panel_of_two_trainings_shows_the_filter_and_no_number_that_is_none(tmp_path):
    given = [("softmax", "pretrained", 0, 0.436), ("softmax", "pretrained", 1, 0.4386)]
    given += [(FILTER, "control", 0, 0.5), (TRUE, "oracle", 0, float("nan"))]
    results = [measured(v, BOX, variant=n, arm=arm, seed=s) for n, arm, s, v in given]
    rows = dots._rows(results)
    panel = dots.Panel("x", {"missed": lambda x: x.metrics["missed"]}, level=FILTER, log=True)
    values = [[row.value(of) for of in panel.marks.values()] for row in rows]
    low, high = dots._limits(rows, values, panel)
    assert low < 0.436 < 0.5 < high
    assert len(dots._places(low, high)) > 1


def test_a_world_of_several_planets_is_refused(untrained):
    several = untrained(protocol="fixed", protocol_args={"n_points": 40, "n_bins": 7000})
    assert "several planets" in PROBE.refusal(Checkpoint.load(several), SETTINGS)
