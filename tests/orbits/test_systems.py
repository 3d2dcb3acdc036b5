import numpy as np
import pytest
from scipy import stats

from orbits import protocols, systems

G = 39.4784176044
DTS = tuple(2.0**k for k in range(-7, 0))
N = 20_000


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000",
         "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
         "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
         "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
    ids=["zeros", "ones", "pi"],
)  # fmt: skip
def test_philox_gives_the_known_answers_of_random123(counter, key, expected):
    def words(text):
        return [int(word, 16) for word in text.split()]

    found = systems.philox4x32(np.array(words(counter), np.uint32), tuple(words(key)))
    assert found.dtype == np.uint32
    assert [f"{word:08x}" for word in found] == expected.split()


def test_uniforms_take_27_and_26_bits_of_two_words():
    found = systems.uniforms(0, 0, [0], 2)[0]
    for value, high, low in (
        (found[0], 0x6627E8D5, 0xE169C58D),
        (found[1], 0xBC57AC4C, 0x9B00DBD8),
    ):
        assert abs(value - ((high // 32) * 2**26 + low // 64) / 2**53) <= 2.0**-53


@pytest.mark.parametrize("word", [0, 0xFFFFFFFF])
def test_uniforms_stay_inside_the_open_interval_for_extreme_words(monkeypatch, word):
    monkeypatch.setattr(
        systems, "philox4x32", lambda counter, key: np.full(counter.shape, word, np.uint32)
    )
    assert np.all(systems.uniforms(0, 0, [0], 3) > 0)
    assert np.all(systems.uniforms(0, 0, [0], 3) < 1)


def test_uniforms_are_uniform_and_uncorrelated():
    u = systems.uniforms(7, 2, np.arange(5000), 4)
    assert u.min() > 0
    assert u.max() < 1
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-3
    off_diagonal = np.corrcoef(u.T) - np.eye(4)
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(5000)


def test_a_draw_does_not_depend_on_how_many_are_drawn_or_on_the_batch():
    indices = np.array([0, 3, 7, 2**33 + 5])
    many = systems.uniforms(11, 1, indices, 9)
    for n in (1, 2, 5, 8):
        np.testing.assert_array_equal(systems.uniforms(11, 1, indices, n), many[:, :n])
    np.testing.assert_array_equal(systems.uniforms(11, 1, indices[::-1], 9), many[::-1])
    np.testing.assert_array_equal(systems.uniforms(11, 1, indices[2:3], 9)[0], many[2])


def test_every_part_of_the_address_changes_every_draw():
    base = systems.uniforms(1, 0, [5], 6)[0]
    others = [(2, 0, 5), (1 + 2**32, 0, 5), (1, 1, 5), (1, 0, 6), (1, 0, 5 + 2**32)]
    for seed, stream, index in others:
        assert not np.any(systems.uniforms(seed, stream, [index], 6)[0] == base)
    grid = [
        systems.uniforms(seed, stream, np.arange(50), 4) for seed in range(5) for stream in range(6)
    ]
    assert len(np.unique(grid)) == 5 * 6 * 50 * 4


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_impossible_seed_is_refused(seed):
    with pytest.raises(ValueError, match=str(seed)):
        systems.uniforms(seed, 0, [0], 1)


def test_negative_index_is_refused():
    with pytest.raises(ValueError, match="-3"):
        systems.uniforms(0, 0, [4, -3], 1)


@pytest.fixture(scope="module")
def binaries():
    return systems.identifiable(0, 3, np.arange(N), DTS)


@pytest.fixture(scope="module")
def planets():
    return systems.exoplanets(0, 0, np.arange(N), (0.0189, 0.486))


def agrees(values, distribution):
    return stats.kstest(np.ravel(values), distribution.cdf).pvalue > 1e-3


def test_identifiable_distributions(binaries):
    assert agrees(binaries.planet_mass, stats.loguniform(0.05, 2))
    assert agrees(binaries.star_mass, stats.loguniform(0.1, 4))
    assert agrees(binaries.semi_major_axis, stats.loguniform(0.5, 2))
    assert agrees(binaries.eccentricity, stats.uniform(0, 0.6))
    assert agrees(binaries.periapsis, stats.uniform(0, 2 * np.pi))
    assert agrees(binaries.mean_anomaly, stats.uniform(0, 2 * np.pi))
    assert agrees(binaries.centre_of_mass, stats.norm(0, 0.1))
    assert np.all(binaries.n_planets == 1)


def test_identifiable_masses_span_a_decade_and_a_half_and_all_draws_are_independent(binaries):
    for mass in (binaries.planet_mass[:, 0], binaries.star_mass):
        assert np.log10(mass.max() / mass.min()) > 1.5
    columns = [
        np.log(binaries.planet_mass[:, 0]),
        np.log(binaries.star_mass),
        np.log(binaries.semi_major_axis[:, 0]),
        binaries.eccentricity[:, 0],
        binaries.periapsis[:, 0],
        binaries.mean_anomaly[:, 0],
        *binaries.centre_of_mass.T,
    ]
    assert np.abs(np.corrcoef(columns) - np.eye(8)).max() < 5 / np.sqrt(N)


def test_identifiable_time_step_is_the_coarsest_with_twelve_samples_per_orbit(binaries):
    total = binaries.planet_mass[:, 0] + binaries.star_mass
    periods = 2 * np.pi * np.sqrt(binaries.semi_major_axis[:, 0] ** 3 / (G * total))
    dt = np.asarray(DTS)[binaries.dt_index]
    assert np.all(periods / dt >= 12)
    coarser = binaries.dt_index < len(DTS) - 1
    assert np.all(periods[coarser] / (2 * dt[coarser]) < 12)
    assert set(binaries.dt_index) == set(range(len(DTS)))


def test_exoplanet_distributions(planets):
    assert agrees(planets.semi_major_axis, stats.uniform(0.3, 31.7))
    assert agrees(planets.eccentricity, stats.beta(0.867, 3.03))
    assert agrees(planets.periapsis, stats.uniform(0, 2 * np.pi))
    assert agrees(planets.mean_anomaly, stats.uniform(0, 2 * np.pi))
    assert agrees(planets.pinned_anomaly, stats.uniform(0, 2 * np.pi))
    assert agrees(planets.centre_of_mass, stats.norm())
    star = stats.lognorm(0.20045013044608198, -0.6793606241621234, 1.6271508907813628)
    assert agrees(planets.star_mass, star)
    assert planets.star_mass.min() >= 0.1
    assert planets.star_mass.max() <= 5


def test_exoplanet_planet_mass_is_a_clipped_gamma(planets):
    gamma = stats.gamma(0.3202016451781988, 6.009814999999999e-08, 0.001105594954623053)
    mass = planets.planet_mass.ravel()
    assert mass.min() >= 1e-9
    assert mass.max() == 1e-3
    at_the_clip = np.mean(mass == 1e-3)
    assert at_the_clip == pytest.approx(gamma.sf(1e-3), abs=5 * np.sqrt(0.1 / mass.size))
    assert at_the_clip == pytest.approx(0.105, abs=0.002)
    free = mass[mass < 1e-3]
    assert stats.kstest(gamma.cdf(free) / gamma.cdf(1e-3), "uniform").pvalue > 1e-3


def test_exoplanet_counts_are_even(planets):
    for values, choices in (
        (planets.n_planets, np.arange(1, 11)),
        (planets.dt_index, np.arange(2)),
    ):
        counts = np.array([np.sum(values == choice) for choice in choices])
        assert counts.sum() == N
        assert stats.chisquare(counts).pvalue > 1e-3
    assert np.all(planets.pinned_planet < planets.n_planets)
    assert np.all(planets.pinned_planet[planets.n_planets == 10] >= 0)
    assert set(planets.pinned_planet[planets.n_planets == 10]) == set(range(10))


def test_rows_of_systems_can_be_picked(binaries):
    rows = np.array([4, 1])
    picked = binaries[rows]
    np.testing.assert_array_equal(picked.star_mass, binaries.star_mass[rows])
    np.testing.assert_array_equal(picked.eccentricity, binaries.eccentricity[rows])


@pytest.mark.parametrize("name", protocols.names())
@pytest.mark.parametrize("population", protocols.POPULATIONS)
def test_no_two_systems_share_a_planet(name, population):
    world = protocols.get(name).systems(0, "train", np.arange(500), population)
    for values in (world.semi_major_axis, world.eccentricity, world.mean_anomaly):
        assert len(np.unique(values)) == values.size
