"""Whether orbits can be told from what is seen of them."""

import numpy as np
import pytest

from orbits import motion, protocols
from orbits.shifts import Shift
from orbits.visible import aliased, bends, check_shifted, periods, reach


def shifted(law="newton", **redraw):
    return protocols.get("identifiable", {"law": law, "shift": Shift("mine", redraw).as_plain()})


def test_what_is_seen_of_the_training_box():
    protocol = protocols.get("identifiable")
    world = protocol.systems(0, "test", np.arange(50))
    total = world.star_mass + world.planet_mass[:, 0]
    np.testing.assert_allclose(
        periods(protocol, world), world.semi_major_axis[:, 0] ** 1.5 / np.sqrt(total), rtol=1e-9
    )
    assert not aliased(protocol, world).any()
    assert aliased(protocol, world._replace(dt_index=np.full(50, 6))).any()
    far = reach(protocol, world)
    assert far.shape == (50,)
    assert 0.1 < far.min() < far.max() < protocol.high


def test_an_orbit_may_turn_faster_than_its_distance_swings():
    protocol = protocols.get("identifiable", {"law": "power_a1_n2.9"})
    world = protocol.systems(0, "test", np.arange(50))
    shape = (world.semi_major_axis[:, 0], world.eccentricity[:, 0])
    radial = motion.period(protocol.law, *shape, world.planet_mass[:, 0], world.star_mass)
    assert (periods(protocol, world) < 0.5 * radial).all()
    assert aliased(protocol, world).any()


def test_bends_are_those_of_the_circle():
    protocol = protocols.get("identifiable")
    world = protocol.systems(0, "test", np.arange(50))
    world = world._replace(eccentricity=np.zeros_like(world.eccentricity))
    dt = np.asarray(protocol.dts)[world.dt_index]
    angle = 2 * np.pi * dt / periods(protocol, world)
    wanted = world.semi_major_axis[:, 0] * 2 * (1 - np.cos(angle)) * 512 / 8
    np.testing.assert_allclose(bends(protocol, world), wanted, rtol=1e-6)
    assert bends(protocols.get("identifiable", {"law": "0.01*m1*m2/r**2"}), world).max() < 1


def test_shifts_by_which_no_orbit_can_be_told_are_refused():
    check_shifted(shifted(planet_mass=[0.4, 2], eccentricity=[0.4, 0.6]))
    with pytest.raises(ValueError, match="'mine': under law 'newton' its orbits are so fast that"):
        check_shifted(shifted(semi_major_axis=[0.01, 0.03]))
    with pytest.raises(ValueError, match=r"'mine': 100% of its systems leave the bins .* at 4 AU"):
        check_shifted(shifted(semi_major_axis=[10, 20]))
    with pytest.raises(ValueError, match="cannot be moved by"):
        check_shifted(
            protocols.get("identifiable", {"shift": Shift("far", dt_octaves=6).as_plain()})
        )
