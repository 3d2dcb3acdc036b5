import numpy as np
import pytest

from orbits import labels, protocols


def forces(name, n=30):
    batch = protocols.get(name).batch(0, "train", np.arange(n), "force")
    return batch["force"], batch["body"] == 1


def test_published_unit_forces_scale_each_component_by_itself():
    force, planet = forces("paper")
    scaled = protocols.get("paper").unit_force(force)
    np.testing.assert_array_equal(np.isfinite(scaled), np.isfinite(force))
    np.testing.assert_allclose(np.nanmax(np.abs(scaled), axis=1), 1, rtol=1e-15)
    assert np.abs(angle(scaled[planet]) - angle(force[planet])).max() > 0.01


@pytest.mark.parametrize("name", ["fixed", "identifiable"])
def test_unit_forces_keep_their_direction(name):
    force, planet = forces(name)
    scaled = protocols.get(name).unit_force(force)
    np.testing.assert_allclose(np.nanmax(np.abs(scaled), axis=(1, 2)), 1, rtol=1e-15)
    np.testing.assert_allclose(angle(scaled[planet]), angle(force[planet]), rtol=0, atol=1e-14)


def angle(vectors):
    return np.arctan2(vectors[:, 1], vectors[:, 0])


def test_published_masks_open_two_rows_of_each_evaluation_sequence():
    protocol = protocols.get("paper", {"label_leak": 2})
    mask = protocol.label_mask("test", np.arange(1000))
    assert mask.shape == (1000, 1000)
    assert np.all(mask.sum(axis=1) == 2)
    assert np.all(np.flatnonzero(mask.any(axis=0)) % 2 == 1)
    assert not mask[:, 999].any()
    # The stream of RandomState(0) over rows 1, 3, ..., 997.
    draws = np.random.RandomState(0)
    for row in mask[:3]:
        np.testing.assert_array_equal(
            np.flatnonzero(row), np.sort(1 + 2 * draws.permutation(499)[:2])
        )
    some = protocol.label_mask("test", [5, 900, 5])
    np.testing.assert_array_equal(some, mask[[5, 900, 5]])


@pytest.mark.parametrize("name", protocols.names())
def test_no_test_label_is_seen_unless_it_is_asked_for(name):
    protocol = protocols.get(name)
    assert protocol.label_leak == 0
    assert not protocol.label_mask("test", np.arange(50)).any()
    leaking = protocols.get(name, {"label_leak": 2})
    assert leaking.config()["label_leak"] == 2
    assert np.all(leaking.label_mask("test", np.arange(50)).sum(axis=1) == 2)
    assert not leaking.label_mask("val", np.arange(50)).any()


@pytest.mark.parametrize("n_points", [6, 7])
def test_every_planet_row_of_training_is_labelled(n_points):
    protocol = protocols.get("identifiable", {"n_points": n_points, "label_leak": 2})
    batch = protocol.batch(0, "train", np.arange(4), "force")
    np.testing.assert_array_equal(protocol.label_mask("train", np.arange(4)), batch["body"] == 1)
    assert np.all((batch["body"] == 1)[protocol.label_mask("test", np.arange(4))])


def test_bad_masks_are_refused():
    protocol = protocols.get("paper", {"label_leak": 2})
    with pytest.raises(ValueError, match="unknown split 'dev'"):
        protocol.label_mask("dev", [0])
    with pytest.raises(ValueError, match="trajectory index must not be negative, got -4"):
        protocol.label_mask("test", [-4])
    with pytest.raises(ValueError, match="label_leak must be 0 or 2, got 3"):
        protocols.get("paper", {"label_leak": 3})
    with pytest.raises(ValueError, match="2 labels asked, 1 rows"):
        labels.few_rows(np.array([1]), 2, 1)
    assert protocol.label_mask("test", []).shape == (0, 1000)
