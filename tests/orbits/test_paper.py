"""The paper protocol is the published one: token for token, draw for draw."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from orbits import paper, protocols, systems

PUBLISHED = Path(__file__).parents[3] / "shared/data/paper_protocol_golden.npz"
# sha256 of arrays made by keyonvafa/inductive-bias-probes at 69d294f, little-endian: tokens
# uint16, labels float32 on the planet rows.
TRAIN_TOKENS = "7dfcd72778c66d11bda55124245d2b6bcb18c39bdfe48fb329993b4029959bf2"
TWO_BODY_TOKENS = "e8774921b1c245ce10f8bbb40f1b31417e4fd48e8ea915eeaf7712b871d9c822"
TWO_BODY_STATE = "680cb26bad1fc960a36730a5af51170ac0316fbeaeb30757cc9a208c9565f5f8"
TWO_BODY_FORCE = "d444bd845fb523fcd6c23f77a396caf32f5cbacf2bdf230e60d45804ec6c770f"

PROTOCOL = protocols.get("paper")


def sha256(array, dtype):
    return hashlib.sha256(np.ascontiguousarray(array).astype(dtype).tobytes()).hexdigest()


@pytest.fixture(scope="module")
def two_body():
    world = paper.from_seeds(10**6 + 20 * np.arange(16), PROTOCOL.dts, max_planets=1)
    return PROTOCOL.observe(world, labelled=True)


def test_training_tokens_are_the_published_ones():
    assert sha256(PROTOCOL.tokens_batch(0, "train", np.arange(64)), "<u2") == TRAIN_TOKENS


def test_two_body_tokens_are_the_published_ones(two_body):
    assert sha256(two_body["tokens"], "<u2") == TWO_BODY_TOKENS


def test_two_body_labels_are_the_published_ones_defects_included(two_body):
    assert sha256(two_body["state"][:, 1::2], "<f4") == TWO_BODY_STATE
    magnitude = np.linalg.norm(two_body["force"][:, 1::2], axis=-1, keepdims=True)
    assert sha256(magnitude, "<f4") == TWO_BODY_FORCE


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the published arrays are not beside the repo")
def test_the_hashes_are_those_of_the_published_arrays(two_body):
    with np.load(PUBLISHED) as published:
        assert sha256(published["train_tokens"], "<u2") == TRAIN_TOKENS
        assert sha256(published["two_body_tokens"], "<u2") == TWO_BODY_TOKENS
        assert sha256(published["two_body_full_state"][:, 1::2], "<f4") == TWO_BODY_STATE
        assert sha256(published["two_body_force_magnitude"][:, 1::2], "<f4") == TWO_BODY_FORCE
        world = paper.from_seeds(published["train_seed"], PROTOCOL.dts, max_planets=10)
        np.testing.assert_array_equal(published["n_bodies"], 1 + world.n_planets)
        mismatches = PROTOCOL.observe(world)["tokens"] != published["train_tokens"]
        assert np.sum(mismatches) == 0


def test_shorter_sequences_are_cut_from_the_published_ones():
    short = protocols.get("paper", {"n_points": 60}).tokens_batch(0, "train", np.arange(20))
    whole = PROTOCOL.tokens_batch(0, "train", np.arange(20))
    np.testing.assert_array_equal(short, whole[:, :61])


def test_states_carry_the_published_defects_and_forces_do_not(two_body):
    world = paper.from_seeds(10**6 + 20 * np.arange(16), PROTOCOL.dts, max_planets=1)
    right = protocols.get("fixed").observe(world, labelled=True)
    np.testing.assert_array_equal(two_body["force"], right["force"])
    r, v = np.split(right["state"][:, 1::2, :4], 2, axis=-1)
    published_r, published_v = np.split(two_body["state"][:, 1::2, :4], 2, axis=-1)
    outward = r / np.linalg.norm(r, axis=-1, keepdims=True)
    across = np.stack([-outward[..., 1], outward[..., 0]], axis=-1)
    speed = np.linalg.norm(v, axis=-1)
    for direction, sign in ((outward, -1), (across, 1)):
        one, other = (np.sum(x * direction, axis=-1) / speed for x in (v, published_v))
        np.testing.assert_allclose(other, sign * one, rtol=0, atol=1e-12)
    # From the star's place at the start instead of now.
    star = right["coordinates"][:, 2::2]
    n = star.shape[1]
    planet = right["coordinates"][:, 1::2][:, :n]
    np.testing.assert_allclose(published_r[:, :n], planet - star[:, :1], rtol=0, atol=1e-12)
    assert np.abs(published_r - r).max() > 1e-4


def test_planets_are_shared_between_neighbouring_systems():
    world = PROTOCOL.systems(0, "train", np.arange(400))
    shared = 0
    for i in np.flatnonzero(world.n_planets[:-1] > 5):
        for k in range(5, world.n_planets[i]):
            if k - 5 < world.n_planets[i + 1]:
                for field in (world.semi_major_axis, world.eccentricity, world.planet_mass):
                    assert field[i, k] == field[i + 1, k - 5]
                shared += 1
    assert shared > 100


def test_splits_stand_where_the_published_run_put_them():
    def first(population, split, index=0):
        stream = systems.stream(population, split)
        return paper.trajectory_seeds(0, stream, [index])[0] // 20

    assert first("pretrain", "train") == 0
    assert first("pretrain", "val") == 10_000_000
    assert first("pretrain", "test") == 10_000_300
    two_body_train = 10_000_600 + 1_000  # after the test split and the sequences for plots
    assert first("force", "train") == two_body_train
    assert first("force", "test") == two_body_train + 9_000
    assert first("force", "val") == two_body_train + 10_000


def test_splits_go_on_beyond_their_published_length_without_meeting():
    taken = []
    for stream, (_, length) in paper.PUBLISHED.items():
        ends = [0, length - 1, length, length + 5, length + 29_999_999]
        taken += (paper.trajectory_seeds(7, stream, ends) - 7).tolist()
        with pytest.raises(ValueError, match="below"):
            paper.trajectory_seeds(0, stream, [length + 30_000_000])
    assert len(set(taken)) == len(taken)
    assert max(taken) + paper.LARGEST_SEED + 42 < 2**32


def test_seeds_beyond_the_legacy_generator_are_refused():
    PROTOCOL.systems(paper.LARGEST_SEED, "test", [0], "force")
    for seed in (paper.LARGEST_SEED + 1, 2**63, -1):
        with pytest.raises(ValueError, match=f"seed must be .*, got {seed}"):
            PROTOCOL.systems(seed, "test", [], "force")


def test_seeds_that_share_trajectories_are_refused():
    """One's training set holds the other's test sequence, which is why."""
    train = PROTOCOL.systems(20, "train", [8999], "force")
    test = PROTOCOL.systems(0, "test", [0], "force")
    assert all(np.array_equal(one, other) for one, other in zip(train, test, strict=True))
    with pytest.raises(ValueError, match="seeds 0 and 20 share trajectories"):
        PROTOCOL.check_seeds([0, 1, 20])
    PROTOCOL.check_seeds(range(20))
    protocols.get("identifiable").check_seeds([0, 20, 40])
