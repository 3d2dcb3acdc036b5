import dataclasses
import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from orbits import laws, protocols
from tests.orbits.worlds import WORLDS

G = 39.4784176044
LABELLED = [name for name in protocols.names() if "force" in protocols.get(name).populations]
SOUND = ("identifiable", "fixed")  # without the published defects of the labels
every_world = pytest.mark.parametrize(("name", "population"), WORLDS)


def make(name, population="force", n=40, **overrides):
    return protocols.get(name, overrides).batch(5, "train", np.arange(n), population)


def bodies_of(batch, row):
    return batch["body"][row, 1:]


# sha256 of the little-endian tokens of the first sequences of split train, seed 0.
GOLDEN = {
    ("identifiable", "pretrain", 3000):
        "0d3e6a67a6ba95ee053d1b6938e813d36d57bcfc1c452aba63c5a413d87200a4",
    ("identifiable", "force", 3000):
        "7ec9682acc40557ed50c86917479b096f4dc701b96c76ab11971b5702d6060be",
    ("fixed", "pretrain", 300):
        "b062c0bf86ef9a22d1bc1511a92a69592696530bebca8cb977cba71b3f178db7",
    ("fixed", "force", 300):
        "719bbd3f4092d998d797de087b7397bed929478430d71d79d7720b254173d5e6",
    ("paper", "pretrain", 100):
        "250f2ec805d7dcd2261c85cb5c29c7ef703666e094fd688f73e23d5f1180e757",
    ("paper", "force", 100):
        "3d1e8ec8dd6909478319e3a445af4cdf5a9328cea208665c62ab0e22fbe02c50",
}  # fmt: skip


@pytest.mark.parametrize("path", ["tokens_batch", "batch"])
@pytest.mark.parametrize(("name", "population", "n"), GOLDEN)
def test_tokens_have_one_hash_on_every_machine(name, population, n, path):
    made = getattr(protocols.get(name), path)(0, "train", np.arange(n), population)
    tokens = made if path == "tokens_batch" else made["tokens"]
    found = hashlib.sha256(tokens.astype("<u2").tobytes()).hexdigest()
    assert found == GOLDEN[name, population, n]


@pytest.mark.full
@every_world
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_bytes_depend_on_the_index_alone(name, population, data):
    protocol = protocols.get(name, {"n_points": 37})
    whole = protocol.batch(5, "val", np.arange(16), population)
    indices = data.draw(st.lists(st.integers(0, 15), min_size=1, max_size=16))
    cut = data.draw(st.integers(0, len(indices)))
    for part in (indices, indices[:cut], indices[cut:]):
        if not part:
            continue
        batch = protocol.batch(5, "val", part, population)
        assert set(batch) == set(whole)
        for key, array in batch.items():
            assert array.tobytes() == whole[key][np.array(part)].tobytes(), key


@every_world
def test_full_length_sequences_do_not_depend_on_the_batch(name, population):
    protocol = protocols.get(name)
    whole = protocol.batch(0, "test", np.arange(12), population)
    for index in range(12):
        one = protocol.batch(0, "test", [index], population)
        for key, array in one.items():
            assert array[0].tobytes() == whole[key][index].tobytes(), key


@every_world
def test_shapes_and_types(name, population):
    protocol, batch = protocols.get(name), make(name, population)
    rows = 1 + protocol.n_points
    expected = {
        "sequence_id": ((40,), np.int64),
        "tokens": ((40, rows, 2), np.uint16),
        "coordinates": ((40, rows, 2), np.float64),
        "body": ((40, rows), np.int8),
        "dt": ((40,), np.float64),
    }
    if population == "force":
        expected |= {
            "force": ((40, rows, 2), np.float64),
            "state": ((40, rows, 6), np.float64),
        }
    assert {k: (v.shape, v.dtype.type) for k, v in batch.items()} == expected


@every_world
def test_first_row_is_the_time_step_and_the_rest_are_bins(name, population):
    protocol, batch = protocols.get(name), make(name, population)
    index = batch["tokens"][:, 0].astype(int) - protocol.n_bins
    np.testing.assert_array_equal(index[:, 0], index[:, 1])
    np.testing.assert_array_equal(batch["dt"], np.array(protocol.dts)[index[:, 0]])
    assert np.all(batch["body"][:, 0] == -1)
    assert np.all(batch["coordinates"][:, 0] == 0)
    assert batch["tokens"][:, 1:].max() < protocol.n_bins
    scaled = (batch["coordinates"][:, 1:] - protocol.low) / (protocol.high - protocol.low)
    expected = np.clip(np.floor(scaled * protocol.n_bins), 0, protocol.n_bins - 1)
    assert np.mean(batch["tokens"][:, 1:] != expected) < 1e-4  # up to rounding at an edge


def test_planets_come_first_then_the_star_for_one_to_ten_planets():
    batch = make("paper", "pretrain", n=120)
    seen = set()
    for row in range(120):
        bodies = bodies_of(batch, row)
        n = int(bodies.max())
        seen.add(n)
        turn = [*range(1, n + 1), 0]
        np.testing.assert_array_equal(bodies, (turn * 999)[:999])
    assert seen == set(range(1, 11))


@pytest.mark.parametrize("n_points", [2, 3, 48, 49])
def test_exactly_the_asked_points_are_observed(n_points):
    batch = make("identifiable", n_points=n_points)
    long = make("identifiable", n_points=60)
    for key in ("tokens", "coordinates", "body", "force", "state"):
        assert batch[key].shape[1] == 1 + n_points
        np.testing.assert_array_equal(batch[key], long[key][:, : 1 + n_points])


@pytest.mark.parametrize("name", SOUND)
def test_force_is_newtons_and_points_from_planet_to_star(name):
    batch = make(name)
    planet = batch["body"] == 1
    r, m1, m2 = (batch["state"][planet][:, i] for i in (slice(0, 2), 4, 5))
    distance = np.hypot(r[:, 0], r[:, 1])
    expected = -G * (m1 * m2 / distance**3)[:, None] * r
    np.testing.assert_allclose(batch["force"][planet], expected, rtol=1e-12)
    # The observed coordinates say where the star is, at the same instant.
    seen = batch["coordinates"]
    pairs = (seen.shape[1] - 1) // 2
    towards_star = seen[:, 2 : 2 * pairs + 1 : 2] - seen[:, 1 : 2 * pairs : 2]
    force = batch["force"][:, 1 : 2 * pairs : 2]
    cosine = np.sum(towards_star * force, axis=-1) / (
        np.linalg.norm(towards_star, axis=-1) * np.linalg.norm(force, axis=-1)
    )
    np.testing.assert_allclose(cosine, 1, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", SOUND)
def test_state_is_the_observed_separation_and_its_masses_are_constant(name):
    batch = make(name)
    seen, state = batch["coordinates"], batch["state"]
    pairs = (seen.shape[1] - 1) // 2
    apart = seen[:, 1 : 2 * pairs : 2] - seen[:, 2 : 2 * pairs + 1 : 2]
    np.testing.assert_allclose(state[:, 1 : 2 * pairs : 2, :2], apart, rtol=0, atol=1e-12)
    masses = state[:, 1::2, 4:]
    assert np.all(masses == masses[:, :1])
    assert np.all(masses > 0)


@pytest.mark.parametrize("name", SOUND)
def test_state_velocity_has_the_energy_of_a_bound_orbit_with_one_axis(name):
    state = make(name)["state"][:, 1::2]
    distance, speed = np.hypot(*state[..., :2].T).T, np.hypot(*state[..., 2:4].T).T
    mu = G * state[..., 4:].sum(axis=-1)
    axis = 1 / (2 / distance - speed**2 / mu)
    assert np.all(axis > 0)
    np.testing.assert_allclose(axis, np.broadcast_to(axis[:, :1], axis.shape), rtol=1e-9)


@pytest.mark.parametrize("name", LABELLED)
def test_two_bodies_move_about_a_fixed_barycentre(name):
    batch = make(name)
    pairs = (batch["body"].shape[1] - 1) // 2
    planet = batch["coordinates"][:, 1 : 2 * pairs : 2]
    star = batch["coordinates"][:, 2 : 2 * pairs + 1 : 2]
    m1, m2 = (batch["state"][:, 1:2, i, None] for i in (4, 5))
    barycentre = (m1 * planet + m2 * star) / (m1 + m2)
    np.testing.assert_allclose(
        barycentre, np.broadcast_to(barycentre[:, :1], barycentre.shape), rtol=0, atol=1e-12
    )
    assert np.all(np.ptp(star, axis=1).max(axis=-1) > 0)


def test_a_star_with_several_planets_is_at_rest_and_with_one_it_moves():
    batch = make("paper", "pretrain", n=120)
    moved = {True: 0, False: 0}
    for row in range(120):
        bodies = batch["body"][row]
        several = bodies.max() > 1
        star = batch["coordinates"][row][bodies == 0]
        assert bool(np.ptp(star, axis=0).max() > 0) != several
        moved[several] += 1
    assert min(moved.values()) > 0


def place(world, row, k, mean):
    """Planet k's place relative to the star at a mean anomaly."""
    a, e = world.semi_major_axis[row, k], world.eccentricity[row, k]
    mean = np.remainder(mean, 2 * np.pi)
    anomaly = brentq(lambda x: x - e * np.sin(x) - mean, -1, 8, xtol=1e-14)
    along = a * (np.cos(anomaly) - e) + 1j * a * np.sqrt(1 - e**2) * np.sin(anomaly)
    planet = along * np.exp(1j * world.periapsis[row, k])
    return np.array([planet.real, planet.imag])


@pytest.mark.parametrize("name", ["paper", "fixed"])
def test_planets_go_round_a_star_at_a_point_of_one_planets_reflex_motion(name):
    protocol = protocols.get(name)
    batch = protocol.batch(5, "train", np.arange(60), "pretrain")
    world = protocol.systems(5, "train", np.arange(60), "pretrain")
    rows = np.flatnonzero(world.n_planets > 1)
    assert len(rows) > 30
    for row in rows:
        k = world.pinned_planet[row]
        m1, m2 = world.planet_mass[row, k], world.star_mass[row]
        star = batch["coordinates"][row][batch["body"][row] == 0][0]
        reflex = -m1 / (m1 + m2) * place(world, row, k, world.pinned_anomaly[row])
        np.testing.assert_allclose(star - world.centre_of_mass[row], reflex, rtol=0, atol=1e-12)
        for k in range(world.n_planets[row]):
            seen = batch["coordinates"][row][batch["body"][row] == k + 1][0]
            apart = place(world, row, k, world.mean_anomaly[row, k])
            np.testing.assert_allclose(seen - star, apart, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", LABELLED)
def test_labels_are_nan_exactly_off_the_planet_rows(name):
    batch = make(name)
    planet = batch["body"] == 1
    for key in ("force", "state"):
        np.testing.assert_array_equal(
            np.isfinite(batch[key]), np.broadcast_to(planet[..., None], batch[key].shape)
        )
        assert np.all(np.isnan(batch[key][~planet]))


@pytest.mark.parametrize("name", protocols.names())
def test_splits_populations_and_seeds_share_no_sequence(name):
    protocol = protocols.get(name, {"n_points": 8})
    masses = [
        protocol.systems(seed, split, np.arange(200), population).star_mass
        for seed in (0, 1)
        for split in protocols.SPLITS
        for population in protocol.populations
    ]
    assert len(np.unique(masses)) == 2 * 3 * len(protocol.populations) * 200
    tokens = [
        protocol.batch(0, split, np.arange(200), population)["tokens"].reshape(200, -1)
        for split in protocols.SPLITS
        for population in protocol.populations
    ]
    assert len(np.unique(np.concatenate(tokens), axis=0)) == 3 * len(protocol.populations) * 200


def test_unknown_choices_are_listed():
    protocol = protocols.get("identifiable")
    for call, choices in (
        (lambda: protocol.batch(0, "dev", [0]), protocols.SPLITS),
        (lambda: protocol.batch(0, "train", [0], "force2"), protocols.POPULATIONS),
        (lambda: protocols.get("papr"), protocols.names()),
        (lambda: protocols.get("paper", {"dts": (1.0,)}), protocols.OVERRIDES),
        (lambda: protocols.get("fixed", {"law": "hooke"}), ("newton",)),
        (lambda: protocols.get("paper", {"target": "sqrt"}), ("log", "raw")),
    ):
        with pytest.raises(ValueError, match="unknown") as error:
            call()
        assert all(choice in str(error.value) for choice in choices), str(error.value)


@pytest.mark.parametrize(
    "override", [{"n_points": 1}, {"n_bins": 1}, {"n_bins": 2**16}, {"n_points": -4}]
)
def test_impossible_overrides_are_refused(override):
    with pytest.raises(ValueError, match=str(next(iter(override.values())))):
        protocols.get("identifiable", override)


@pytest.mark.parametrize("name", protocols.names())
def test_overrides_apply_and_config_tells_them_apart(name):
    protocol = protocols.get(name, {"n_points": 11, "n_bins": 99, "target": "raw"})
    assert (protocol.n_points, protocol.n_bins, protocol.target) == (11, 99, "raw")
    config = protocol.config()
    there = set() if protocol.disturbance is None else {"disturbance"}
    fields = {f.name for f in dataclasses.fields(protocol)} - {"shift", "disturbance"}
    assert set(config) == fields | there
    assert json.loads(json.dumps(config)) == config
    assert config != protocols.get(name).config()
    assert protocol.batch(0, "train", [0])["tokens"][0, 0, 0] >= 99


@every_world
def test_an_empty_batch_has_the_same_arrays(name, population):
    empty = protocols.get(name).batch(0, "train", [], population)
    full = make(name, population, n=1)
    assert {k: v.shape[1:] for k, v in empty.items()} == {k: v.shape[1:] for k, v in full.items()}
    assert all(len(v) == 0 for v in empty.values())


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("law", ["harmonic", "mond"])
def test_another_law_moves_and_labels_the_bodies(name, law):
    protocol = protocols.get(name, {"law": law, "n_points": 200})
    assert protocol.config()["law"] == law
    batch = protocol.batch(0, "val", np.arange(20), "force")
    state = batch["state"][:, 1::2]
    r, v, m1, m2 = state[..., :2], state[..., 2:4], state[..., 4], state[..., 5]
    distance = np.linalg.norm(r, axis=-1)
    expected = laws.get(law).magnitude(distance, m1, m2)
    force = batch["force"][:, 1::2]
    np.testing.assert_allclose(np.linalg.norm(force, axis=-1), expected, rtol=1e-12)
    np.testing.assert_allclose(np.sum(force * r, axis=-1), -expected * distance, rtol=1e-12)
    momentum = r[..., 0] * v[..., 1] - r[..., 1] * v[..., 0]
    np.testing.assert_allclose(momentum, momentum[:, :1] * np.ones_like(momentum), rtol=1e-8)
    np.testing.assert_array_equal(
        protocol.tokens_batch(0, "val", np.arange(20), "force"), batch["tokens"]
    )
    newton = protocols.get(name, {"n_points": 200}).batch(0, "val", np.arange(20), "force")
    assert np.mean(newton["tokens"] != batch["tokens"]) > 0.5


def test_a_law_that_binds_nothing_is_refused():
    with pytest.raises(ValueError, match="inverse_cube' does not bind"):
        protocols.get("identifiable", {"law": "inverse_cube"}).batch(0, "train", [0])


@pytest.mark.parametrize("name", ["paper", "fixed"])
@pytest.mark.parametrize("law", ["product_squared_over_r2", "squares_times_r2", "m1_1_3_over_r2_6"])
def test_light_planets_must_move_alike(name, law):
    with pytest.raises(ValueError, match=f"{law}' differ by powers of ten; take identifiable"):
        protocols.get(name, {"law": law})
    protocols.get("identifiable", {"law": law}).batch(0, "train", [0])
    protocols.get(name, {"law": "m1_over_r2", "n_points": 24}).batch(0, "train", [0], "force")


@pytest.mark.parametrize("name", ["n_points", "n_bins"])
@pytest.mark.parametrize("value", [48.5, "48"])
def test_a_number_of_points_or_bins_is_whole(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a whole number, got {value!r}"):
        protocols.get("identifiable", {name: value})
