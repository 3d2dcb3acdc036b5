"""How well a force head answers: measures by their definitions, on made-up predictions."""

import numpy as np
import pytest

from worldmodel.probes.force.measures import measured

G = 39.4784176044


def points(n_sequences=60, per_sequence=8, noise=0.3, seed=0):
    """Forces of some law, and predictions of another with noise."""
    rng = np.random.default_rng(seed)
    sequence = np.repeat(np.arange(n_sequences) * 3, per_sequence)
    m1, m2 = np.exp(rng.normal(0, 1, (2, n_sequences))).repeat(per_sequence, axis=1)
    r = np.exp(rng.normal(0, 0.5, len(sequence)))
    true = rng.normal(0, 1, (len(sequence), 2))
    predicted = 30 * m1**0.7 * m2**0.4 * r**-1.8 * np.exp(rng.normal(0, noise, len(r)))
    return {
        "sequence_id": sequence,
        "m1": m1,
        "m2": m2,
        "r": r,
        "force": G * m1 * m2 / r**2,
        "force_predicted": predicted,
        "force_vector": true,
        "force_vector_predicted": true + rng.normal(0, 0.5, true.shape),
    }


def test_measures_are_those_of_their_definitions():
    given = points()
    found = measured([given])
    truth, answer = np.log(given["force"]), np.log(given["force_predicted"])
    r2 = 1 - np.mean((answer - truth) ** 2) / truth.var()
    assert found["r2_log"][0] == pytest.approx(r2, rel=1e-9)
    relative = np.abs(given["force_predicted"] / given["force"] - 1)
    assert found["relative_error"][0] == pytest.approx(np.median(relative), rel=0.02)
    a, b = given["force_vector"], given["force_vector_predicted"]
    cosine = np.sum(a * b, axis=1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    assert found["cosine"][0] == pytest.approx(cosine.mean(), rel=1e-9)
    names = ("m1", "m2", "r")
    design = np.column_stack([np.ones(len(truth)), *(np.log(given[n]) for n in names)])
    fitted = np.linalg.lstsq(design, answer, rcond=None)[0][1:]
    for name, value in zip(names, fitted, strict=True):
        middle, low, high = found[f"exponent_{name}"]
        assert middle == pytest.approx(value, rel=1e-9)
        assert low < middle < high
    assert "unusable" not in found


@pytest.mark.full
def test_intervals_are_as_wide_as_new_sequences_scatter():
    found = [measured([points(40, 4, noise=1.0, seed=seed)])["exponent_m1"] for seed in range(20)]
    middles, lows, highs = np.transpose(found)
    assert np.median(highs - lows) == pytest.approx(2 * 1.96 * middles.std(), rel=0.4)


def test_trainings_are_averaged_before_intervals():
    runs = [points(noise=0.2), points(noise=0.2)]
    runs[1]["force_predicted"] = runs[1]["force"] * 2.0
    squares = [np.mean(np.log(r["force_predicted"] / r["force"]) ** 2) for r in runs]
    expected = 1 - np.mean(squares) / np.log(runs[0]["force"]).var()
    assert measured(runs)["r2_log"][0] == pytest.approx(expected, rel=1e-9)


def test_predictions_without_a_logarithm_are_counted_and_left_out():
    given = points()
    given["force_predicted"] = given["force"].copy()
    given["force_predicted"][::4] *= -1
    given["force_predicted"][1] = np.nan
    found = measured([given])
    assert found["unusable"] == pytest.approx(np.mean(~(given["force_predicted"] > 0)))
    assert found["r2_log"][0] == pytest.approx(1)
    assert found["exponent_r"][0] == pytest.approx(-2)
    given["force_predicted"][:] = -1
    found = measured([given])
    assert set(found) == {"cosine", "unusable"}, "nothing has a logarithm"
    assert found["unusable"] == 1
