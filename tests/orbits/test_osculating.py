"""Osculating elements: the inverse of the motion, under laws of several families."""

import numpy as np
import pytest

from orbits import laws, motion, protocols
from orbits.osculating import osculating


@pytest.mark.parametrize("law", ["newton", "power_a1_n1.5", "power_a1_n2.5", "softened"])
def test_elements_of_a_state_are_those_of_its_orbit(law):
    world = protocols.get("identifiable", {"law": law}).systems(0, "test", range(40))
    orbits = world.orbits(0)
    times = np.tile([0.0, 0.37, 1.1], (40, 1))
    place, velocity = motion.relative_orbit(law, orbits, times)
    found = osculating(
        laws.get(law), place[:, 1], velocity[:, 1], world.planet_mass[:, 0], world.star_mass
    )
    np.testing.assert_allclose(found.semi_major_axis, orbits.semi_major_axis, rtol=1e-9)
    np.testing.assert_allclose(found.eccentricity, orbits.eccentricity, atol=1e-9)
    again = motion.relative_orbit(law, found, times - 0.37)
    np.testing.assert_allclose(again[0], place, atol=1e-6)
    np.testing.assert_allclose(again[1], velocity, atol=1e-5)


def test_what_is_not_bound_has_no_elements():
    place, ones = np.array([[1.0, 0.0]] * 3), np.ones(3)
    circle = np.sqrt(laws.get("newton").relative_acceleration(1.0, 1.0, 1.0))
    velocity = np.outer([1.0, 1.5, -1.0], [0, circle])  # a circle, an escape, and retrograde
    found = osculating(laws.get("newton"), place, velocity, ones, ones)
    assert found.eccentricity[0] == pytest.approx(0, abs=1e-7)
    assert found.semi_major_axis[0] == pytest.approx(1)
    assert np.isnan(found.semi_major_axis[1:]).all()


def test_an_orbit_that_a_barrier_binds_has_elements():
    law = "yukawa_length_1.5"
    world = protocols.get("neutral_step", {"law": law}).systems(0, "test", range(60))
    orbits = world.orbits(0)
    assert orbits.semi_major_axis.max() > 1.6  # beyond, screened orbits are free in energy
    place, velocity = motion.relative_orbit(law, orbits, np.zeros((60, 1)))
    found = osculating(
        laws.get(law), place[:, 0], velocity[:, 0], world.planet_mass[:, 0], world.star_mass
    )
    np.testing.assert_allclose(found.semi_major_axis, orbits.semi_major_axis, rtol=1e-7)
