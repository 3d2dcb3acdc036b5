import numpy as np
import pytest

from orbits import protocols
from orbits.ceiling import ceiling_force


def exponents(protocol, n):
    """Fit log F = c + x log m1 + y log m2 + z log r by least squares over all planet rows."""
    batch = protocol.batch(0, "test", np.arange(n), "force")
    force = ceiling_force(protocol, 0, "test", np.arange(n))
    planet = batch["body"] == 1
    state = batch["state"][planet]
    columns = [state[:, 4], state[:, 5], np.hypot(state[:, 0], state[:, 1])]
    design = np.column_stack([np.ones(len(state)), np.log(columns).T])
    return np.linalg.lstsq(design, np.log(force[planet]), rcond=None)[0][1:]


def test_identifiable_world_shows_newtons_exponents():
    found = exponents(protocols.get("identifiable"), 500)
    np.testing.assert_allclose(found, [1, 1, -2], rtol=0, atol=0.02)


def test_coarser_bins_lower_the_ceiling():
    fine = exponents(protocols.get("identifiable"), 60)
    coarse = exponents(protocols.get("identifiable", {"n_bins": 12}), 60)
    assert np.abs(coarse - [1, 1, -2]).max() > 2 * np.abs(fine - [1, 1, -2]).max()


def test_planet_mass_is_invisible_in_the_paper_world():
    found = exponents(protocols.get("paper", {"n_points": 60}), 60)
    assert found[0] < 0.5


@pytest.mark.parametrize("n_points", [47, 48])
def test_ceiling_is_given_on_planet_rows_only(n_points):
    protocol = protocols.get("identifiable", {"n_points": n_points})
    batch = protocol.batch(0, "test", np.arange(12), "force")
    force = ceiling_force(protocol, 0, "test", np.arange(12))
    np.testing.assert_array_equal(np.isfinite(force), batch["body"] == 1)
    truth = np.hypot(*np.moveaxis(batch["force"], -1, 0))
    share = force[batch["body"] == 1] / truth[batch["body"] == 1]
    assert np.median(np.abs(np.log(share))) < 0.05
