"""Shifted protocols: what is redrawn, what keeps its bits, and that all else works on them."""

import json

import numpy as np
import pytest
from scipy import stats

from orbits import motion, protocols, shifts
from orbits.best_observer import best_observer
from orbits.binaries import CORNER
from orbits.shifts import ELEMENTS, Shift

NAMES = ("identifiable", "free_step")
N = np.arange(400)
KEPT = ("periapsis", "mean_anomaly", "centre_of_mass", "n_planets")
every_shift = pytest.mark.parametrize("shift", shifts.names())
every_name = pytest.mark.parametrize("name", NAMES)


def both(name, shift, indices=N, **overrides):
    plain, moved = (protocols.get(name, {**overrides, "shift": each}) for each in (None, shift))
    return plain, moved, *(p.systems(0, "test", indices, "force") for p in (plain, moved))


def log_uniform(name, low, high):
    return stats.uniform(low, high - low) if name == "eccentricity" else stats.loguniform(low, high)


def turns(world):
    """Orbital periods by Kepler's third law in years."""
    total = world.planet_mass[:, 0] + world.star_mass
    return np.sqrt(world.semi_major_axis[:, 0] ** 3 / total)


@every_name
@every_shift
def test_what_a_shift_names_is_in_its_range_and_all_else_keeps_its_bits(name, shift):
    _, protocol, before, after = both(name, shift)
    kept = np.ones(len(N), bool)
    if protocol.shift.dt_octaves:  # systems whose step cannot be moved are drawn again
        kept = before.star_mass == after.star_mass
        assert kept.mean() > 0.95
    for field in (*ELEMENTS, *KEPT):
        one, other = getattr(before, field)[kept], getattr(after, field)[kept]
        if field in protocol.shift.redraw:
            low, high = protocol.shift.redraw[field]
            assert np.all((other > low) & (other < high))
            drawn = log_uniform(field, low, high)
            assert stats.kstest(other.ravel(), drawn.cdf).pvalue > 1e-3
            assert abs(stats.spearmanr(one.ravel(), other.ravel())[0]) < 0.2
        else:
            assert one.tobytes() == other.tobytes(), field


@every_shift
def test_the_time_step_is_the_protocols_choice_for_the_new_orbit_and_then_moved(shift):
    _, protocol, _, world = both("identifiable", shift)
    dts = np.asarray(protocol.dts)
    coarsest = [
        max([dt for dt in dts if 12 * dt <= period], default=dts[0]) for period in turns(world)
    ]
    np.testing.assert_array_equal(
        dts[world.dt_index], np.array(coarsest) * 2.0**protocol.shift.dt_octaves
    )


@every_name
@pytest.mark.parametrize("octaves", [-4, -2, 2, 4])
def test_every_time_step_is_really_moved(name, octaves):
    """Most systems of these have a step at an end of the list, and are drawn again."""
    shift = Shift("far", dt_octaves=octaves)
    _, protocol, before, after = both(name, shift)
    again = before.star_mass != after.star_mass
    assert 0.01 < again.mean() < 1
    for element, (low, high) in zip(
        ELEMENTS, [(0.05, 2), (0.1, 4), (0.5, 2), (0, 0.6)], strict=True
    ):
        values = getattr(after, element)
        assert np.all((values >= low) & (values <= high))
    for field in KEPT:
        assert getattr(before, field).tobytes() == getattr(after, field).tobytes()
    points = turns(after) / np.asarray(protocol.dts)[after.dt_index] * 2.0**octaves
    assert points.min() >= 12
    assert points.max() < (24 if name == "identifiable" else 48 * 2**0.25 + 1e-9)


def test_a_redrawn_system_has_the_redrawn_elements_of_the_shift_too():
    shift = Shift("wide", {"planet_mass": (2, 4)}, dt_octaves=-3)
    _, _, before, after = both("identifiable", shift)
    assert (before.star_mass != after.star_mass).any()
    assert np.all((after.planet_mass > 2) & (after.planet_mass < 4))


def test_a_system_drawn_again_is_not_of_the_corner_either():
    _, _, before, after = both("without_corner", Shift("far", dt_octaves=4))
    assert (before.star_mass != after.star_mass).mean() > 0.1
    assert not np.all([getattr(after, name) > bound for name, bound in CORNER.items()], 0).any()


def test_a_step_chosen_by_the_angle_stays_so_under_a_shift():
    law = "power_1_5"
    _, protocol, _, world = both("neutral_step", "closer", law=law)
    orbit = world.orbits(0)
    turn = motion.angular_period(law, orbit.semi_major_axis, orbit.eccentricity, orbit.m1, orbit.m2)
    points = turn / np.asarray(protocol.dts)[world.dt_index]
    assert points[world.dt_index > 0].min() >= 12
    assert points[world.dt_index < len(protocol.dts) - 1].max() < 24


@every_name
@pytest.mark.parametrize("shift", ["both_heavier", "half_step"])
def test_a_sequence_depends_on_its_index_alone(name, shift):
    protocol = protocols.get(name, {"shift": shift})
    whole = protocol.batch(3, "test", N, "force")
    some = np.array([399, 0, 17])
    part = protocol.batch(3, "test", some, "force")
    for key, values in part.items():
        assert values.tobytes() == whole[key][some].tobytes(), key
    np.testing.assert_array_equal(protocol.tokens_batch(3, "test", some, "force"), part["tokens"])
    assert protocol.batch(3, "test", [], "force")["force"].shape == (0, 49, 2)


@every_shift
def test_planets_stay_in_the_box(shift):
    for name in NAMES:
        protocol = protocols.get(name, {"shift": shift})
        seen = protocol.batch(0, "test", np.arange(2000), "force")["coordinates"]
        assert np.mean(np.abs(seen) > protocol.high) < 1e-3


@pytest.mark.parametrize("law", ["newton", "power_1_5"])
def test_the_best_observer_answers_under_a_shift(law):
    protocol = protocols.get("identifiable", {"shift": "both_heavier", "law": law})
    answer = best_observer(protocol, 0, "test", N[:40])
    batch = protocol.batch(0, "test", N[:40], "force")
    truth = np.linalg.norm(batch["force"], axis=-1)
    error = np.log(answer.force / truth)[np.isfinite(truth)]
    assert np.sqrt(np.mean(error**2)) < 0.05


def test_a_shift_is_a_setting_of_the_data_and_no_shift_leaves_none():
    for name in protocols.names():
        assert "shift" not in protocols.get(name).config()
        assert protocols.get(name, {"shift": None}) == protocols.get(name)
    plain, moved = protocols.get("identifiable"), protocols.get("identifiable", {"shift": "closer"})
    config = json.loads(json.dumps(moved.config()))
    assert config.pop("shift") == shifts.get("closer").as_plain()
    assert config == plain.config()
    assert moved.unshifted == plain
    again = protocols.get("identifiable", {"shift": moved.config()["shift"]})
    assert again == moved
    assert moved.tokens == plain.tokens


def test_a_shifted_protocol_is_asked_and_never_trained_on():
    protocol = protocols.get("identifiable", {"shift": "closer"})
    assert protocol.populations == ("force",)
    assert not protocol.is_compiled
    for split, population in (("train", "force"), ("val", "force"), ("test", "pretrain")):
        for make in (protocol.systems, protocol.batch, protocol.tokens_batch):
            with pytest.raises(ValueError, match="take population force, split test, not"):
                make(0, split, [0], population)


@pytest.mark.parametrize("name", ["paper", "fixed", "nbody"])
def test_other_protocols_cannot_be_shifted(name):
    with pytest.raises(ValueError, match=rf"{name}.*take identifiable or free_step"):
        protocols.get(name, {"shift": "closer"})


def test_a_step_without_a_token_is_refused_before_any_work():
    with pytest.raises(ValueError, match=r"no time step of protocol 'identifiable' .* \+7 octaves"):
        protocols.get("identifiable", {"shift": {"name": "far", "dt_octaves": 7}})
    with pytest.raises(ValueError, match="unknown shift"):
        protocols.get("identifiable", {"shift": "further"})
