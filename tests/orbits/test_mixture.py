"""Mixtures of worlds: sequences of single worlds, drawn law by law, the same however they come."""

import dataclasses

import numpy as np
import pytest

from orbits import laws, mixture, protocols
from orbits.laws.family import power_name
from orbits.mixture import Mixture, is_held_out, spread

PROTOCOL = protocols.get("neutral_step", {"n_points": 8})
HELD_OUT = (-2.2, -1.8, -1.2, -0.8)


def test_exponents_fill_what_is_not_held_out_evenly():
    found = spread(-2.75, 0.25, HELD_OUT, 64)
    assert len(set(found)) == 64
    assert not any(is_held_out(x, HELD_OUT) for x in found)
    gaps = np.diff(found)
    assert np.sort(gaps)[:-2] == pytest.approx(2.2 / 64, abs=2e-4)
    assert np.sort(gaps)[-2:] == pytest.approx(0.4 + 2.2 / 64, abs=2e-4)
    assert -2.75 < found[0] < found[-1] < 0.25
    assert is_held_out(-2, HELD_OUT)
    assert not is_held_out(-1.5, HELD_OUT)
    assert spread(-3, -1, (), 2) == (-2.5, -1.5)


@pytest.mark.parametrize("held_out", [(-1.0,), (-0.5, -1.0), (-4.0, -2.0), (-2.75, 0.25)])
def test_what_cannot_be_held_out_is_refused(held_out):
    with pytest.raises(ValueError, match=r"exponents"):
        spread(-2.75, 0.25, held_out, 8)


def test_names_of_power_laws_are_one_each():
    assert power_name(1.25) == "power_a1_n1.25"
    assert power_name(-0.25) == "power_a1_n-0.25"
    assert power_name(-0.0) == "power_a1_n0"


@pytest.mark.parametrize("n", [-0.25, 0.0, 1.0, 1.5, 2.0])
def test_power_laws_are_those_of_files_and_the_slopes_of_their_potentials(n):
    law, r, h = laws.get(power_name(n)), np.array([0.3, 1.0, 2.5]), 1e-6
    assert law.exponents == {"r": -n, "m1": 1.0, "m2": 1.0}
    slope = (law.potential_energy(r + h, 0.4, 2) - law.potential_energy(r - h, 0.4, 2)) / (2 * h)
    assert law.magnitude(r, 0.4, 2) == pytest.approx(slope, rel=1e-6)
    files = {1.0: "logarithmic", 1.5: "power_1_5", 2.0: "newton"}
    if n in files:
        assert law.magnitude(r, 0.4, 2) == pytest.approx(laws.get(files[n]).magnitude(r, 0.4, 2))


def test_a_sequence_is_that_of_its_world():
    worlds = Mixture(PROTOCOL, (-2.5, -1.5, -0.5))
    indices = np.r_[5:25, 9000]
    batch = worlds.batch(3, "train", indices)
    numbers = worlds.numbers(3, "train", indices)
    assert set(numbers) == {0, 1, 2}
    assert batch["exponent"].tolist() == [worlds.exponents[k] for k in numbers]
    for row, (index, number) in enumerate(zip(indices, numbers, strict=True)):
        law = ("power_2_5", "power_1_5", "power_a1_n0.5")[number]
        own = dataclasses.replace(PROTOCOL, law=law).batch(3, "train", [index])
        for name, values in own.items():
            assert batch[name][row].tobytes() == values[0].tobytes(), name


def test_blocks_give_what_single_sequences_give(monkeypatch):
    monkeypatch.setattr(mixture, "BLOCK", 16)
    worlds = Mixture(PROTOCOL, (-2.5, -1.5))
    indices = [40, 3, 15, 16, 17, 3]
    plain, fast = worlds.batch(1, "val", indices), worlds.streamed(1, "val", indices)
    assert plain.keys() == fast.keys()
    for name, values in plain.items():
        assert fast[name].dtype == values.dtype
        assert fast[name].tobytes() == values.tobytes(), name


def test_laws_have_equal_parts_and_say_nothing_of_the_orbit():
    worlds = Mixture(PROTOCOL, spread(-2.75, 0.25, HELD_OUT, 8))
    numbers = worlds.numbers(0, "train", np.arange(20_000))
    counts = np.bincount(numbers, minlength=8)
    assert counts.min() > 2500 - 5 * np.sqrt(2500)
    masses = PROTOCOL.systems(0, "train", np.arange(20_000)).planet_mass[:, 0]
    assert abs(np.corrcoef(numbers, np.log(masses))[0, 1]) < 5 / np.sqrt(20_000)
    other = worlds.numbers(1, "train", np.arange(20_000))
    assert abs(np.corrcoef(numbers, other)[0, 1]) < 5 / np.sqrt(20_000)


def test_bad_mixtures_are_refused_before_any_work():
    with pytest.raises(ValueError, match="at least one exponent"):
        Mixture(PROTOCOL, ())
    with pytest.raises(ValueError, match="several; take neutral_step"):
        Mixture(protocols.get("fixed"), (-2.0,))
    with pytest.raises(ValueError, match="would tell the law by the orbits"):
        Mixture(protocols.get("without_corner"), (-2.0, -1.5))  # whose draws reach the law's
    with pytest.raises(ValueError, match=r"power_a1_n3\.2': n must be"):
        Mixture(PROTOCOL, (-3.2, -2.0)).batch(0, "train", range(99))


def test_laws_of_other_families_are_drawn_as_powers_are():
    both = Mixture(PROTOCOL, (-1.5,), ("softened_length_0.7", "mond_a0_40"))
    index, drawn = np.arange(30), both.numbers(0, "test", np.arange(30))
    batch = both.batch(0, "test", index)
    assert set(drawn) == {0, 1, 2}
    np.testing.assert_array_equal(np.isnan(batch["exponent"]), drawn > 0)
    rows = index[drawn == 2]
    own = dataclasses.replace(PROTOCOL, law="mond_a0_40").batch(0, "test", rows)
    np.testing.assert_array_equal(batch["coordinates"][rows], own["coordinates"])
