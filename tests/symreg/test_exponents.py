import json

import numpy as np
import pytest

from symreg.exponents import distance_exponents, fit_exponents, prediction_metrics

G = 39.4784176044


def naive_bootstrap(X, y, groups, n_boot, seed):
    """The plain twin: rebuild each resampled data set and solve it by lstsq."""
    rng = np.random.default_rng(seed)
    labels = np.unique(groups)
    members = [np.flatnonzero(groups == label) for label in labels]
    solutions = []
    for _ in range(n_boot):
        counts = rng.multinomial(len(labels), np.full(len(labels), 1 / len(labels)))
        rows = np.concatenate([np.repeat(m, c) for m, c in zip(members, counts, strict=True)])
        design = np.column_stack([np.ones(len(rows)), np.log(X[rows])])
        solutions.append(np.linalg.lstsq(design, np.log(y[rows]), rcond=None)[0])
    solutions = np.array(solutions)
    solutions[:, 0] = np.exp(solutions[:, 0])
    return np.percentile(solutions, [2.5, 97.5], axis=0).T


def sequences(make, seed, n_sequences=40, length=10, noise=0.1):
    """Points in sequences: masses and one error are shared by the points of a sequence."""
    points = make(seed, n_sequences * length)
    groups = np.repeat(np.arange(n_sequences), length)
    X = points.X.copy()
    X[:, 1:] = X[::length, 1:][groups]
    shared = np.random.default_rng(seed).normal(size=n_sequences)[groups]
    return X, G * X[:, 1] * X[:, 2] / X[:, 0] ** 2 * np.exp(noise * shared), groups


def test_recovers_a_power_law_exactly(sample):
    r, m1, m2 = sample.X.T
    fit = fit_exponents(sample.X, 7.5 * m1**0.5 * m2**-1.25 / r**3, np.arange(1000))
    for name, truth in {"r": -3.0, "m1": 0.5, "m2": -1.25}.items():
        assert fit.exponents[name] == pytest.approx((truth,) * 3, abs=1e-10)
    assert fit.constant == pytest.approx((7.5,) * 3, rel=1e-10)
    assert (fit.n_points, fit.n_sequences, fit.dropped) == (1000, 1000, 0.0)


def test_bootstrap_equals_the_naive_loop(make):
    X, y, groups = sequences(make, seed=3)
    fit = fit_exponents(X, y, groups, n_boot=200, seed=5)
    expected = naive_bootstrap(X, y, groups, n_boot=200, seed=5)
    got = np.array([fit.constant, *fit.exponents.values()])[:, 1:]
    np.testing.assert_allclose(got, expected, rtol=1e-8)


@pytest.mark.parametrize(("n_sequences", "bounded"), [(5, False), (9, False), (10, True)])
@pytest.mark.parametrize("n_boot", [0, 100])
def test_few_sequences_give_a_value_without_an_interval(make, n_sequences, bounded, n_boot):
    X, y, groups = sequences(make, seed=4, n_sequences=n_sequences)
    fit = fit_exponents(X, y, groups, n_boot=n_boot)
    design = np.column_stack([np.ones(len(y)), np.log(X)])
    constant, *exponents = np.linalg.lstsq(design, np.log(y), rcond=None)[0]
    triples = [fit.constant, *fit.exponents.values()]
    np.testing.assert_allclose([t[0] for t in triples], [np.exp(constant), *exponents], rtol=1e-8)
    assert fit.n_sequences == n_sequences
    assert fit.n_boot == (n_boot if bounded else 0)
    for _, low, high in triples:
        assert np.isfinite([low, high]).all() == bounded
        assert low <= high
    assert json.loads(json.dumps(fit.record())) == plain(fit.record())


def plain(record):
    """Return a record as JSON has it: with lists for tuples."""
    lists = {name: list(triple) for name, triple in record["exponents"].items()}
    return {**record, "exponents": lists, "constant": list(record["constant"])}


def test_sequences_without_a_usable_point_do_not_count(make):
    X, y, groups = sequences(make, seed=4, n_sequences=10)
    fit = fit_exponents(X, np.where(groups == 3, np.nan, y), groups)
    assert (fit.n_sequences, fit.exponents["r"][2]) == (9, np.inf)


def test_points_without_a_logarithm_are_dropped_and_stated(sample):
    y = sample.newton
    y[:100] = -1.0
    y[100:150] = np.nan
    y[150:200] = 0.0
    fit = fit_exponents(sample.X, y, np.arange(1000), n_boot=10)
    assert fit.dropped == pytest.approx(0.2)
    assert fit.exponents["r"][0] == pytest.approx(-2)


def test_bad_points_are_refused(sample):
    groups = np.arange(1000)
    with pytest.raises(ValueError, match=r"X must have shape \[n, 3\]"):
        fit_exponents(sample.X[:, :2], sample.newton, groups)
    with pytest.raises(ValueError, match="groups must have shape"):
        fit_exponents(sample.X, sample.newton, groups[:5])
    with pytest.raises(ValueError, match="only 0 of 1000"):
        fit_exponents(sample.X, -sample.newton, groups)
    X = sample.X.copy()
    X[:, 1] = 1.0
    with pytest.raises(ValueError, match="do not determine"):
        fit_exponents(X, sample.newton, groups)


def test_prediction_metrics_by_hand():
    true = np.array([1.0, np.e, np.e**2])
    metrics = prediction_metrics(true, true * np.e)
    assert metrics["rms_log_error"] == pytest.approx(1.0)
    assert metrics["r2_log"] == pytest.approx(1 - 3 / 2)
    assert metrics["median_relative_error"] == pytest.approx(np.e - 1)
    residual, total = np.sum((true * (np.e - 1)) ** 2), np.sum((true - true.mean()) ** 2)
    assert metrics["r2"] == pytest.approx(1 - residual / total)
    assert metrics["dropped"] == 0.0


def test_prediction_metrics_with_unusable_predictions():
    metrics = prediction_metrics([1.0, 2.0, 4.0, 8.0], [1.0, 2.0, -4.0, np.nan])
    assert metrics["dropped"] == 0.5
    assert metrics["r2_log"] == pytest.approx(1.0)
    assert metrics["median_relative_error"] == 0.0
    assert prediction_metrics([1.0, 2.0], [-1.0, -1.0])["r2_log"] is None
    with pytest.raises(ValueError, match="positive finite"):
        prediction_metrics([1.0, 0.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="one shape"):
        prediction_metrics([1.0, 2.0], [1.0])


def test_r2_of_a_constant_is_not_defined():
    metrics = prediction_metrics(np.full(50, 0.1), np.full(50, 0.1) * 1.0000001)
    assert metrics["r2"] is None
    assert metrics["r2_log"] is None


def test_the_exponent_along_orbits_and_between_them_are_told_apart(make):
    X, _, groups = sequences(make, seed=3, noise=0)
    level = np.random.default_rng(0).uniform(1, 5, size=40)[groups]  # one place per orbit
    X[:, 0] = level * np.random.default_rng(1).uniform(0.5, 2, size=len(X))
    mean = np.exp([np.log(X[groups == g, 0]).mean() for g in range(40)])[groups]
    split = distance_exponents(X, X[:, 1] * X[:, 2] * mean**-1 * (X[:, 0] / mean) ** -2, groups)
    assert split["within"] == pytest.approx((-2, -2, -2))
    assert split["between"] == pytest.approx((-1, -1, -1))
    pooled = fit_exponents(X, X[:, 1] * X[:, 2] * mean**-1 * (X[:, 0] / mean) ** -2, groups)
    assert -2 < pooled.exponents["r"][0] < -1, "a mixture of the two"


def test_what_points_do_not_determine_has_no_distance_exponent(make):
    X, y, groups = sequences(make, seed=3, n_sequences=4)
    assert distance_exponents(X, y, groups)["between"] is None
    once = distance_exponents(X[::10], y[::10], groups[::10])
    assert once == {"within": None, "between": None}
