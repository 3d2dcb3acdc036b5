"""Orbit fits to what a model has seen, against fits one by one, the truth, and what is asked."""

import numpy as np
import pytest

from orbits import ceiling, labels, laws, protocols
from orbits.causal_ceiling import causal_ceiling

pytestmark = pytest.mark.full

N = np.arange(30)


def errors(protocol, answer, indices=N):
    truth = np.linalg.norm(protocol.batch(0, "test", indices, "force")["force"], axis=-1)
    asked = np.isfinite(answer.force)
    return np.log(answer.force[asked] / truth[asked])


def test_forces_are_asked_at_the_planets_rows_of_the_second_half():
    assert labels.asked_rows(48).tolist() == [*range(25, 48, 2)]
    assert labels.asked_rows(47).tolist() == [*range(25, 48, 2)]
    assert labels.asked_rows(49).tolist() == [*range(27, 50, 2)]
    assert labels.asked_rows(2).tolist() == []
    assert labels.asked_rows(3).tolist() == [3]


@pytest.mark.full
def test_the_rows_that_are_asked_are_those_that_models_answer():
    orbits = pytest.importorskip("worldmodel.data.orbit_sequences")
    for n_points in (2, 3, 11, 47, 48, 49):
        protocol = protocols.get("identifiable", {"n_points": n_points})
        held_out = orbits.OrbitSequences(protocol, "force", "test", 0, 4)
        force = held_out.__getitems__([0, 3])["force"].numpy()
        asked = np.zeros(force.shape[1], bool)
        asked[labels.asked_rows(n_points)] = True
        np.testing.assert_array_equal(np.isfinite(force[..., 0]), np.tile(asked, (2, 1)))


@pytest.mark.parametrize(
    ("law", "n_points"),
    [("newton", 48), pytest.param("power_1_5", 47, marks=pytest.mark.full)],
)
def test_each_answer_is_the_fit_to_the_points_up_to_its_row(law, n_points):
    protocol = protocols.get("identifiable", {"law": law, "n_points": n_points})
    answer = causal_ceiling(protocol, 0, "test", N)
    world = protocol.systems(0, "test", N, "force")
    expected = np.full(answer.force.shape, np.nan)
    for row in range(25, n_points + 1, 2):
        found = ceiling.fit(protocol, world, row, ceiling.typical_systems(protocol))
        expected[:, row] = ceiling.implied_force(protocol, found)[:, row]
        np.testing.assert_allclose(answer.m1[:, row], found.m1, rtol=1e-12)
        np.testing.assert_allclose(answer.m2[:, row], found.m2, rtol=1e-12)
    np.testing.assert_allclose(answer.force, expected, rtol=1e-12)
    np.testing.assert_array_equal(answer.converged, np.isfinite(expected))


def test_an_answer_reads_nothing_that_comes_later():
    """Truncated after a row, a sequence has the same answer at that row."""
    short, whole = (protocols.get("identifiable", {"n_points": n}) for n in (35, 48))
    world = short.systems(0, "test", N, "force")
    cut = ceiling.fit(short, world, population=ceiling.typical_systems(short))
    expected = ceiling.implied_force(short, cut)[:, 35]
    np.testing.assert_allclose(
        causal_ceiling(whole, 0, "test", N).force[:, 35], expected, rtol=1e-9
    )


@pytest.mark.full
def test_later_answers_are_better_and_all_see_less_than_the_whole_sequence():
    protocol, many = protocols.get("identifiable"), np.arange(300)
    answer = causal_ceiling(protocol, 0, "test", many)
    error = errors(protocol, answer, many).reshape(300, -1)
    assert np.median(np.abs(error[:, 0])) > 1.1 * np.median(np.abs(error[:, -1]))
    assert 0.01 < np.sqrt(np.mean(error**2)) < 0.03
    truth = np.linalg.norm(protocol.batch(0, "test", many, "force")["force"], axis=-1)
    whole = ceiling.implied_force(protocol, ceiling.best_fit(protocol, 0, "test", many))
    asked = labels.asked_rows(48)
    of_whole = np.log(whole[:, asked] / truth[:, asked])
    assert np.median(np.abs(of_whole)) < np.median(np.abs(error))


@pytest.mark.parametrize("shift", ["planet_heavier", "both_heavier", "more_eccentric"])
def test_a_shift_does_not_trouble_who_knows_the_law(shift):
    protocol = protocols.get("identifiable", {"shift": shift})
    answer = causal_ceiling(protocol, 0, "test", N)
    assert answer.converged[:, labels.asked_rows(48)].all()
    assert np.median(np.abs(errors(protocol, answer))) < 0.02


@pytest.mark.full
def test_the_prior_is_that_of_the_training_population():
    """A planet too light to show is taken for one of the training population."""
    lightest = {"name": "lightest", "redraw": {"planet_mass": [1e-3, 2e-3]}}
    protocol = protocols.get("identifiable", {"shift": lightest, "n_points": 16})
    told = protocol.systems(0, "test", range(100), "force")
    ignorant, knowing = (
        errors(protocol, causal_ceiling(protocol, 0, "test", N, population))
        for population in (None, told)
    )
    assert np.median(ignorant) > 0.7, "it takes the planet for a heavier one"
    assert np.sqrt(np.mean(knowing**2)) < 0.5 * np.sqrt(np.mean(ignorant**2))


def test_where_masses_do_not_show_there_is_no_causal_ceiling():
    for name in ("paper", "fixed"):
        with pytest.raises(ValueError, match=rf"masses of protocol '{name}' do not show.*take"):
            causal_ceiling(protocols.get(name), 0, "test", [0])
    with pytest.raises(ValueError, match="no labelled population"):
        causal_ceiling(protocols.get("nbody"), 0, "test", [0])


def test_the_force_is_the_laws_at_the_fitted_masses_and_distance():
    protocol = protocols.get("identifiable", {"law": "power_1_5"})
    answer = causal_ceiling(protocol, 0, "test", N)
    asked = labels.asked_rows(48)
    world = protocol.systems(0, "test", N, "force")
    state = protocol.batch(0, "test", N, "force")["state"][:, asked]
    near = laws.get("power_1_5").magnitude(
        np.hypot(state[..., 0], state[..., 1]), answer.m1[:, asked], answer.m2[:, asked]
    )
    np.testing.assert_allclose(answer.force[:, asked], near, rtol=0.15)
    np.testing.assert_allclose(np.median(answer.m2[:, asked], axis=1), world.star_mass, rtol=0.2)
