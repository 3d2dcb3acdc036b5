"""The exchange-mass probe: its pairs, its exchanges, its unit, words and refusals."""

import dataclasses

import numpy as np
import pytest

from orbits import protocols
from tests.worldmodel.probes.evaluation import evaluate, found, result
from worldmodel import probes
from worldmodel.controls.names import FILTER, IN_BINS
from worldmodel.models.load import load_model
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.donors import (
    ANOTHER_MASS,
    CONTROLS,
    EVERY,
    LAST_STEP,
    NO_DONOR,
    RANDOM,
    WHOLE,
)
from worldmodel.probes.same_state import mass_words
from worldmodel.probes.same_state.exchange import ask, whole
from worldmodel.probes.same_state.mass_change import MassChange
from worldmodel.probes.same_state.pairs import FACTORS, of_masses
from worldmodel.probes.settings import Settings

SHORT = {"n_points": 24, "n_bins": 256}
SETTINGS = Settings(n_sequences=60, seeds=(3,))
PROBE = "exchange_mass"


@pytest.fixture(scope="module", params=["m1", "m2"])
def pair(request):
    """Return pairs of Newton's world with another mass of the planet, or of the star."""
    return of_masses(protocols.get("identifiable", SHORT), request.param, 0, 60)


@pytest.fixture(scope="module")
def change(pair):
    return MassChange(pair)


def test_pairs_have_one_other_mass_and_meet_where_the_prompt_ends(pair):
    last, own, partner = pair.own.n_prompt, pair.own, pair.partners[ANOTHER_MASS]
    far = np.abs(partner.batch["coordinates"] - own.batch["coordinates"]).max(axis=2)
    assert far[:, last - 2 : last].max() < 1e-6
    assert np.median(far[:, 1:3]) > 1e-3, "the past differs"
    assert np.median(far[:, -2:]) > 1e-2, "and so does what follows"
    np.testing.assert_array_equal(partner.batch["dt"], own.batch["dt"])
    planets = partner.world.planet_mass[:, 0] / own.world.planet_mass[:, 0]
    stars = partner.world.star_mass / own.world.star_mass
    changed, kept = (planets, stars) if planets.std() else (stars, planets)
    assert set(np.round(changed, 12)) == set(FACTORS)
    np.testing.assert_array_equal(kept, 1)


def test_pairs_have_the_same_velocity_of_one_about_the_other(pair):
    last = pair.own.n_prompt

    def step(test):
        rows = test.batch["coordinates"]
        relative = rows[:, 1::2] - rows[:, 2::2]
        return relative[:, (last - 1) // 2] - relative[:, (last - 5) // 2]  # about the meeting

    own, partner = step(pair.own), step(pair.other)
    size = np.linalg.norm(own, axis=-1)
    assert np.median(np.linalg.norm(own - partner, axis=-1) / size) < 0.2, "bends differ alone"


def test_the_truth_is_the_unit_and_straight_lines_have_no_mass(pair, change):
    truth = found(whole(pair, lambda test: test.batch["coordinates"], change), donor=ANOTHER_MASS)
    assert truth["slope_mass"].value == pytest.approx(1)
    assert truth["slope_place"].value == pytest.approx(1)
    straight = whole(pair, change.straight, change)
    assert found(straight, donor=ANOTHER_MASS)["slope_place"].value == pytest.approx(1, abs=0.4)
    assert abs(found(straight, donor=ANOTHER_MASS)["slope_mass"].value) < 0.4, "coarse bins"
    assert found(straight, donor=NO_DONOR)["slope_mass"].value == 0


def test_lines_through_true_places_are_the_place_part_alone(pair, change):
    own, other = (x.batch["coordinates"].copy() for x in (pair.own, pair.other))
    n, last = pair.own.n_prompt, pair.own.n_prompt - 1
    for rows in (own, other):  # written again, a step at a time
        for row in range(n, n + 12):
            rows[:, row] = 2 * rows[:, row - 2] - rows[:, row - 4]
    assert last % 2 == 0
    measured = change.measured(own, {ANOTHER_MASS: other})[ANOTHER_MASS]
    assert measured["slope_place"].value == pytest.approx(1, abs=1e-5)
    assert measured["slope_mass"].value == pytest.approx(0, abs=1e-5)


@pytest.mark.full
def test_all_rows_of_the_input_are_the_other_prompt_and_its_last_step_is_none(
    untrained, pair, change
):
    model = load_model(untrained(head_std=0.3, protocol_args=SHORT, n_layer=2)).eval()
    outcomes = ask(model, pair, change, only=(LAST_STEP, EVERY))
    shown = found(outcomes, after=WHOLE, donor=ANOTHER_MASS)
    every = found(outcomes, after="embedding", rows=EVERY, donor=ANOTHER_MASS)
    for name, metric in every.items():
        np.testing.assert_allclose(metric, shown[name], rtol=1e-6, atol=1e-9)
    step = found(outcomes, after="embedding", rows=LAST_STEP, donor=ANOTHER_MASS)
    assert step["slope"].value == 0, "the same places, in the same bins"
    assert found(outcomes, after="block 1", rows=LAST_STEP, donor=ANOTHER_MASS)["slope"].value
    assert not model.embedding._forward_hooks, "the model is left as it was"


def test_words_say_what_the_last_step_brings():
    def results(share):
        places = {(WHOLE, WHOLE): 0.5, ("block 1", LAST_STEP): share, ("block 1", EVERY): 0.4}
        for (after, rows), value in places.items():
            setting = {"changed": "m1", "after": after, "rows": rows, "donor": ANOTHER_MASS}
            metrics = {"slope_mass": (value, value - 0.1, value + 0.1)}
            yield result(metrics=metrics, setting=setting, kind=PROBE)
        for rows in (LAST_STEP, EVERY):
            setting = {"changed": "m1", "after": "block 1", "rows": rows, "donor": RANDOM}
            yield result(metrics={"slope_mass": (0, -0.1, 0.1)}, setting=setting, kind=PROBE)
        for who, arm in ((IN_BINS, "oracle"), (FILTER, "control")):
            setting = {"changed": "m1", "after": WHOLE, "rows": WHOLE, "donor": ANOTHER_MASS}
            metrics = {"slope_mass": (0.7, 0.6, 0.8)}
            yield result(who, arm, metrics=metrics, setting=setting, kind=PROBE)

    overall, said, unit = mass_words.answers(list(results(0.2)))
    assert overall.startswith("Shown another past of the same state, models follow 0.50 to 0.50 of")
    assert f"another m1 changes ({FILTER} 0.70)" in overall
    assert "softmax, shown a past with another m1 that ends in the same state, follows 0.50" in said
    assert f"({IN_BINS} 0.70 [0.60, 0.80], {FILTER} 0.70 [0.60, 0.80])" in said
    assert "alone: 0.20 [0.10, 0.30] after block 1 (0.40 with every row, in a " in said
    assert "random direction 0.00)" in said
    assert "residual after block 1 brings some of it (a step of the same length in a" in said
    assert said.endswith("random direction 0.00 [-0.10, 0.10]).")
    assert "straight lines" in unit
    _, said, _ = mass_words.answers(list(results(0.05)))
    assert "That the last step's residual brings any of it is not shown." in said


def test_it_refuses_what_has_no_such_pair(untrained):
    refusal = probes.get(PROBE).refusal
    newton = Checkpoint.load(untrained(protocol_args=SHORT))
    assert refusal(newton, SETTINGS) is None
    few = dataclasses.replace(SETTINGS, n_sequences=2)
    assert "of 2 systems of law 'newton' only" in refusal(newton, few)
    many = Checkpoint.load(untrained(protocol="fixed", protocol_args={"n_points": 48}))
    assert refusal(many, SETTINGS)
    with pytest.raises(ValueError, match="unknown mass 'm3'; choose from m1, m2"):
        of_masses(newton.protocol, "m3", 0, 60)


@pytest.mark.full
def test_results_of_a_run(untrained, tmp_path):
    path = untrained(head_std=0.3, protocol_args={"n_points": 48, "n_bins": 256})
    results = evaluate(PROBE, path, SETTINGS, tmp_path)
    assert {x.case.arm for x in results} == {"pretrained", "untrained", "oracle", "control"}
    assert all(np.isfinite(m.value) for x in results for m in x.metrics.values())
    settings = [x.case.setting for x in results if x.case.arm == "pretrained"]
    assert {x["changed"] for x in settings} == {"m1", "m2"}
    for rows in (LAST_STEP, EVERY):
        donors = {x["donor"] for x in settings if (x["after"], x["rows"]) == ("block 1", rows)}
        assert donors == {ANOTHER_MASS, *CONTROLS}
    (picture,) = probes.get(PROBE).draw(results, tmp_path)
    assert picture.images[0].stat().st_size > 10_000
    assert len(probes.get(PROBE).answers(results)) == 4
