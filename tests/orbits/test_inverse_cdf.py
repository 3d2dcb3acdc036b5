import numpy as np
import pytest
from scipy import special

from orbits import inverse_cdf
from orbits.inverse_cdf import BETA, GAMMA, NORMAL, quantile

A, B = 0.867, 3.03
SHAPE = 0.3202016451781988

# Lower and upper tail probability of a value.
TAILS = {
    NORMAL: (special.ndtr, lambda x: special.ndtr(-x)),
    GAMMA: (lambda x: special.gammainc(SHAPE, x), lambda x: special.gammaincc(SHAPE, x)),
    BETA: (lambda x: special.betainc(A, B, x), lambda x: special.betainc(B, A, 1 - x)),
}
every_distribution = pytest.mark.parametrize("distribution", TAILS)


def draws():
    rng = np.random.default_rng(0)
    tail = 2.0 ** rng.uniform(-54, -1, 50_000)
    edges = [0.5, 0.25, 0.75, 2.0**-54, 1 - 2.0**-53]
    return np.r_[rng.uniform(0, 1, 50_000), tail, 1 - np.maximum(tail, 2.0**-53), edges]


@every_distribution
def test_distribution_function_gives_the_draw_back(distribution):
    u = draws()
    value = quantile(inverse_cdf.load(), distribution, u)
    lower, upper = TAILS[distribution]
    tail = np.minimum(u, 1 - u)
    found = np.where(u < 0.5, lower(value), upper(value))
    # Errors of the table itself, the same on every machine, and not of rounding.
    assert np.abs(found - tail).max() < 1.3e-6
    assert (np.abs(found - tail) / tail).max() < 5e-6  # the tails are as good as the middle


@every_distribution
def test_quantiles_rise_and_stay_inside_their_range(distribution):
    u = np.unique(draws())
    value = quantile(inverse_cdf.load(), distribution, u)
    assert np.all(np.diff(value) >= 0)
    low, high = {NORMAL: (-8.3, 8.3), GAMMA: (0, 34), BETA: (0, 1)}[distribution]
    assert value.min() > low
    assert value.max() < high


def test_the_table_is_what_scipy_computes():
    made, shipped = inverse_cdf.make(), inverse_cdf.load()
    assert made.shape == shipped.shape
    np.testing.assert_allclose(made[:, 0], shipped[:, 0], rtol=1e-9)
    # The higher coefficients are differences of the values, so they share the values' scale.
    scale = np.abs(shipped[:, :2]).max(axis=1, keepdims=True)
    assert (np.abs(made - shipped) / scale).max() < 1e-9


@pytest.mark.parametrize("cut", [0, 100, 81_727])
def test_a_damaged_table_is_refused(tmp_path, monkeypatch, cut):
    data = bytearray(inverse_cdf.TABLE.read_bytes())
    data[cut] ^= 1
    damaged = tmp_path / "inverse_cdf.npy"
    damaged.write_bytes(data)
    monkeypatch.setattr(inverse_cdf, "TABLE", damaged)
    with pytest.raises(ValueError, match="damaged"):
        inverse_cdf.load.__wrapped__()


def test_the_table_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        inverse_cdf.load()[0, 0, 0, 0] = 1
