import numpy as np
import pytest
from scipy import stats

from orbits import laws, motion, protocols, systems
from orbits.binaries import CORNER, SAMPLERS, WIDE, drawn_points
from orbits.philox import uniforms

G = 39.4784176044
DTS = tuple(2.0**k for k in range(-7, 0))
N = 20_000


@pytest.fixture(scope="module")
def binaries():
    return SAMPLERS["identifiable"](0, 3, np.arange(N), DTS)


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


def test_free_step_draws_the_points_of_an_orbit_and_nothing_else_anew(binaries):
    dts = protocols.get("free_step").dts
    free = SAMPLERS["free_step"](0, 3, np.arange(N), dts)
    for field in set(systems.Systems._fields) - {"dt_index"}:
        assert getattr(free, field).tobytes() == getattr(binaries, field).tobytes(), field
    wanted = drawn_points(uniforms(0, 3, np.arange(N), 9)[:, 8])
    assert agrees(wanted, stats.loguniform(12, 48))
    total = free.planet_mass[:, 0] + free.star_mass
    periods = 2 * np.pi * np.sqrt(free.semi_major_axis[:, 0] ** 3 / (G * total))
    points = periods / np.asarray(dts)[free.dt_index]
    assert np.all(points >= wanted)
    coarser = np.append(dts, np.inf)[free.dt_index + 1]
    assert np.all(periods / coarser < wanted)
    columns = np.log([wanted, periods, free.planet_mass[:, 0], free.star_mass])
    assert np.abs(np.corrcoef(columns)[0, 1:]).max() < 5 / np.sqrt(N)


def test_the_time_step_tells_less_of_the_period_where_it_is_drawn(binaries):
    def told(world, dts):
        periods = 1.5 * np.log(world.semi_major_axis[:, 0]) - 0.5 * np.log(
            world.planet_mass[:, 0] + world.star_mass
        )
        return np.corrcoef(periods, np.log(np.asarray(dts)[world.dt_index]))[0, 1] ** 2

    dts = protocols.get("free_step").dts
    free = SAMPLERS["free_step"](0, 3, np.arange(N), dts)
    assert told(binaries, DTS) == pytest.approx(0.93, abs=0.01)
    assert told(free, dts) == pytest.approx(0.76, abs=0.02)


def test_twice_a_time_step_of_free_step_is_a_time_step():
    dts = protocols.get("free_step").dts
    assert len(dts) == 32
    assert np.allclose(np.diff(np.log2(dts)), 0.25, rtol=0, atol=1e-12)
    assert {2 * dt for dt in dts[:-4]} == set(dts[4:])


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
    counts = np.array([np.sum(planets.n_planets == n) for n in range(1, 11)])
    assert counts.sum() == N
    assert stats.chisquare(counts).pvalue > 1e-3
    assert np.all(planets.pinned_planet < planets.n_planets)
    assert np.all(planets.pinned_planet[planets.n_planets == 10] >= 0)
    assert set(planets.pinned_planet[planets.n_planets == 10]) == set(range(10))


def test_rows_of_systems_can_be_picked(binaries):
    rows = np.array([4, 1])
    picked = binaries.rows(rows)
    np.testing.assert_array_equal(picked.star_mass, binaries.star_mass[rows])
    np.testing.assert_array_equal(picked.eccentricity, binaries.eccentricity[rows])


def fewest_samples(world, dts):
    """Points per orbit of each system's fastest planet, by Kepler's third law."""
    there = np.arange(world.planet_mass.shape[1]) < world.n_planets[:, None]
    total = world.star_mass[:, None] + world.planet_mass
    periods = np.sqrt(world.semi_major_axis**3 * (4 * np.pi**2 / (G * total)))
    return np.where(there, periods, np.inf).min(axis=1) / dts


def test_the_long_time_step_is_taken_by_half_of_the_systems_that_it_does_not_alias(planets):
    could_be_long = fewest_samples(planets, 0.486) >= 4
    assert 0.7 < np.mean(could_be_long) < 0.9
    assert np.all(planets.dt_index[~could_be_long] == 0)
    long = np.sum(planets.dt_index[could_be_long])
    assert stats.binomtest(int(long), int(could_be_long.sum())).pvalue > 1e-3


@pytest.mark.parametrize("population", protocols.POPULATIONS)
def test_no_orbit_of_the_fixed_protocol_is_aliased(population):
    protocol = protocols.get("fixed")
    world = protocol.systems(1, "train", np.arange(5000), population)
    assert fewest_samples(world, np.asarray(protocol.dts)[world.dt_index]).min() >= 4


@pytest.mark.parametrize("name", ["identifiable", "fixed"])
@pytest.mark.parametrize("population", protocols.POPULATIONS)
def test_no_two_systems_share_a_planet(name, population):
    world = protocols.get(name).systems(0, "train", np.arange(500), population)
    for values in (world.semi_major_axis, world.eccentricity, world.mean_anomaly):
        assert len(np.unique(values)) == values.size


@pytest.mark.parametrize("sample", [SAMPLERS["identifiable"], systems.exoplanets])
def test_impossible_addresses_are_refused(sample):
    with pytest.raises(ValueError, match="trajectory index must not be negative, got -1"):
        sample(0, 0, [-1], DTS)
    with pytest.raises(ValueError, match=r"seed must be in \[0, 2\^64\), got -5"):
        sample(-5, 0, [1], DTS)


def test_unknown_populations_and_splits_are_listed():
    with pytest.raises(ValueError, match="pretrain, force"):
        systems.stream("planets", "train")
    with pytest.raises(ValueError, match="train, val, test"):
        systems.stream("force", "dev")
    numbers = {systems.stream(p, s) for p in systems.POPULATIONS for s in systems.SPLITS}
    assert len(numbers) == 6


def periods_of(law, world):
    orbit = world.orbits(0)
    arguments = [np.asarray(x) for x in (orbit.semi_major_axis, orbit.eccentricity)]
    arguments += [np.asarray(orbit.m1), np.asarray(orbit.m2)]
    return motion.period(law, *arguments), motion.angular_period(law, *arguments)


@pytest.mark.parametrize("law", ["power_a1_n0.5", "power_1_5", "power_2_5"])
def test_a_neutral_step_samples_a_turn_of_the_angle_alike_under_every_law(law):
    world = SAMPLERS["neutral_step"](0, 3, np.arange(400), DTS, law=law)
    radial, angular = periods_of(law, world)
    points = angular / np.asarray(DTS)[world.dt_index]
    there = world.dt_index > 0  # the finest of all may be too coarse
    assert points[there].min() >= 12
    assert points[world.dt_index < len(DTS) - 1].max() < 24
    n = -laws.get(law).exponents["r"]
    near_circle = world.eccentricity[:, 0] < 0.1
    swings = np.mean((angular / radial)[near_circle])
    assert swings == pytest.approx(np.sqrt(3 - n), rel=0.01)


def test_under_newtons_law_the_neutral_step_is_that_of_identifiable(binaries):
    neutral = SAMPLERS["neutral_step"](0, 3, np.arange(N), DTS)
    for field in systems.Systems._fields:
        assert getattr(neutral, field).tobytes() == getattr(binaries, field).tobytes(), field


def test_a_turn_of_the_angle_is_what_a_path_shows():
    law = "power_1_5"
    world = SAMPLERS["neutral_step"](0, 3, np.arange(4), DTS, law=law)
    _, angular = periods_of(law, world)
    turns = 400
    times = angular[:, None] * np.linspace(0, turns, 100 * turns + 1)
    path, _ = motion.relative_orbit(law, world.orbits(0), times)
    angle = np.unwrap(np.arctan2(path[..., 1], path[..., 0]), axis=1)
    assert (angle[:, -1] - angle[:, 0]) / (2 * np.pi) == pytest.approx(turns, abs=0.5)


def test_without_a_corner_both_elements_are_met_and_never_together(binaries):
    part = SAMPLERS["without_corner"](0, 3, np.arange(N), DTS)

    def above(world, name):
        return getattr(world, name)[:, 0] > CORNER[name]

    corner = above(binaries, "planet_mass") & above(binaries, "eccentricity")
    assert 0.13 < corner.mean() < 0.16
    assert not (above(part, "planet_mass") & above(part, "eccentricity")).any()
    for field, before, after in zip(part._fields, binaries, part, strict=True):
        np.testing.assert_array_equal(before[~corner], after[~corner], err_msg=field)
    assert (binaries.semi_major_axis[corner] != part.semi_major_axis[corner]).all()
    # Drawn again or not, what is outside is as it is in the whole box.
    for name in ("planet_mass", "star_mass", "semi_major_axis", "eccentricity"):
        again, kept = (np.ravel(getattr(part, name)[rows]) for rows in (corner, ~corner))
        assert stats.ks_2samp(again, kept).pvalue > 1e-3
    alone = SAMPLERS["without_corner"](0, 3, np.flatnonzero(corner)[:5], DTS)
    np.testing.assert_array_equal(alone.star_mass, part.star_mass[corner][:5])


def test_without_wide_orbits_all_others_keep_their_bits(binaries):
    part = SAMPLERS["without_wide"](0, 3, np.arange(N), DTS)
    wide = binaries.semi_major_axis[:, 0] > WIDE["semi_major_axis"]
    assert 0.14 < wide.mean() < 0.18, "ln(2 / 1.6) / ln 4"
    assert part.semi_major_axis.max() <= WIDE["semi_major_axis"]
    for field, before, after in zip(part._fields, binaries, part, strict=True):
        np.testing.assert_array_equal(before[~wide], after[~wide], err_msg=field)
