"""What an observer who carries another law answers: right masses, and the wrong distance."""

import numpy as np
import pytest

from benchmarks.newton.observers import infers_mass, observed_force
from orbits import laws
from symreg.exponents import distance_exponents, fit_exponents
from worldmodel.data.orbits import OrbitData
from worldmodel.models.predictions import central_columns


def answers(world, believed, past, n=200):
    args = {} if world == "newton" else {"law": world}
    data = OrbitData(protocol_args=args, population="force", n_test=n, n_train=10, batch_size=n)
    batch = next(iter(data.test_dataloader()))
    force = observed_force(batch, laws.get(world), laws.get(believed), past)
    columns = {k: v.double().numpy() for k, v in central_columns(batch, force).items()}
    return columns, np.stack([columns[name] for name in ("r", "m1", "m2")], axis=1)


def test_who_believes_the_law_of_the_world_sees_the_true_force():
    for past in (False, True):
        columns, _ = answers("power_1_5", "power_1_5", past, n=20)
        np.testing.assert_allclose(columns["force_predicted"], columns["force"], rtol=2e-5)


def test_a_newtonian_observer_elsewhere_has_right_masses_and_a_wrong_distance():
    columns, X = answers("power_1_5", "newton", past=False)
    fitted = fit_exponents(X, columns["force_predicted"], columns["sequence_id"], n_boot=0)
    exponents = {name: triple[0] for name, triple in fitted.exponents.items()}
    assert exponents == pytest.approx({"m1": 1, "m2": 1, "r": -1}, abs=1e-4)  # float32 states


def test_a_mass_averaged_over_the_past_shows_the_carried_law_along_each_orbit():
    columns, X = answers("power_1_5", "newton", past=True)
    split = distance_exponents(X, columns["force_predicted"], columns["sequence_id"])
    assert split["within"][0] == pytest.approx(-2, abs=0.05)
    assert split["between"][0] == pytest.approx(-1, abs=0.1)
    true = distance_exponents(X, columns["force"], columns["sequence_id"])
    assert true["within"][0] == pytest.approx(-1.5, abs=1e-4)
    # Geometric means of the sequences: the true law is a power law between them, too.
    assert true["between"][0] == pytest.approx(-1.5, abs=1e-4)


@pytest.mark.parametrize("law", ["product_squared_over_r2", "squares_times_r2"])
@pytest.mark.full
def test_a_mass_is_inferred_by_other_powers_of_it(law):
    columns, _ = answers(law, law, past=False, n=20)
    np.testing.assert_allclose(columns["force_predicted"], columns["force"], rtol=2e-5)


def test_a_law_of_which_motion_does_not_tell_the_mass_gives_none():
    none = {law for law in laws.names() if not infers_mass(law)}
    assert none == {"mond", "m1_over_r2", "m1_over_r2_6"}
