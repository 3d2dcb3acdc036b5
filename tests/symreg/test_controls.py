from dataclasses import replace

import numpy as np
import pytest

from orbits import laws
from symreg import controls
from symreg.exponents import fit_exponents
from symreg.predictions import Predictions


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    n = 1200
    X = np.column_stack([rng.uniform(0.5, 4, n), rng.uniform(0.1, 1, n), rng.uniform(0.5, 2, n)])
    force = laws.get("newton").magnitude(*X.T)
    return Predictions(
        sequence_id=np.arange(n) // 12,
        step=np.arange(n) % 12,
        X=X,
        force=force,
        force_predicted=force * np.exp(rng.normal(0.1, 0.3, n)),
        vectors={"force_vector": np.ones((n, 2))},
        manifest={},
        sha256="",
        row={},
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("true force", {"r": -2, "m1": 1, "m2": 1}),
        ("constant", {"r": 0, "m1": 0, "m2": 0}),
        ("1/r", {"r": -1, "m1": 0, "m2": 0}),
        ("m1/r^2", {"r": -2, "m1": 1, "m2": 0}),
        ("m2/r^2", {"r": -2, "m1": 0, "m2": 1}),
        ("m1*m2/r^2", {"r": -2, "m1": 1, "m2": 1}),
    ],
)
def test_a_control_follows_its_law_at_the_strength_of_the_truth(data, name, expected):
    made = controls.answer(name, data)
    fitted = fit_exponents(data.X, made.force_predicted, data.sequence_id, n_boot=0)
    for variable, value in expected.items():
        assert fitted.exponents[variable][0] == pytest.approx(value, abs=1e-9)
    assert np.median(made.force_predicted / data.force) == pytest.approx(1, rel=1e-3)
    assert not made.vectors, "vectors of the model would not be those of the control"


def test_yukawa_is_not_newton_on_these_points(data):
    made = controls.answer("Yukawa", data)
    fitted = fit_exponents(data.X, made.force_predicted, data.sequence_id, n_boot=0)
    assert fitted.exponents["r"][0] < -2.2


def test_noise_has_the_size_of_the_errors_and_depends_on_nothing(data):
    noisy = controls.answer(controls.NOISE, data)
    error = np.log(noisy.force_predicted / data.force)
    assert error.mean() == pytest.approx(0.1, abs=0.03)
    assert error.std() == pytest.approx(0.3, abs=0.03)
    assert not np.allclose(noisy.force_predicted, data.force_predicted)
    again = controls.answer(controls.NOISE, data)
    np.testing.assert_array_equal(noisy.force_predicted, again.force_predicted)


def test_the_oracle_is_near_the_truth_and_never_asks_its_own_sequence(data):
    oracle = controls.answer(controls.NEAREST, data)
    error = np.abs(np.log(oracle.force_predicted / data.force))
    assert 0.01 < np.median(error) < 0.3
    # Forces of one sequence that say nothing true must not come back in its own answers.
    own = data.sequence_id == 7
    force = np.where(own, 1e6, data.force)
    spoiled = controls.answer(controls.NEAREST, replace(data, force=force))
    assert spoiled.force_predicted[own].max() < 1e5


def test_the_oracle_needs_two_sequences(data):
    lone = replace(data, sequence_id=np.zeros(len(data)))
    with pytest.raises(ValueError, match="two sequences"):
        controls.answer(controls.NEAREST, lone)


def test_the_true_law_is_not_among_the_wrong_ones():
    assert "m1*m2/r^2" not in controls.names("newton")
    assert "m1*m2/r^2" in controls.names("harmonic")
    assert "Yukawa" not in controls.names("yukawa")
    assert "Yukawa" not in controls.names("yukawa_length_5")
    assert "m1/r^2" not in controls.names("m1_over_r2")
    assert "m1*m2/r^2" in controls.names("m1_over_r2")


def test_an_unknown_control_is_refused(data):
    with pytest.raises(ValueError, match="unknown control 'ptolemy'"):
        controls.answer("ptolemy", data)
