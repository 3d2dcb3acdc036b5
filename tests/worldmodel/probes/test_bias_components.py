"""Components of the state in new functions, and what knows none: memory, linear filter, table."""

import numpy as np

from orbits import protocols
from worldmodel.probes.bias import components, white_noise
from worldmodel.probes.bias.histories import histories

PROTOCOL = protocols.get("identifiable", {"n_points": 16, "n_bins": 64})


def test_a_component_that_an_output_leaves_out_has_slope_zero_and_its_proxy_nothing_more():
    """Velocity goes with place on these states; an output of the place alone is told apart."""
    rng = np.random.default_rng(0)
    states = rng.standard_normal((60, 10, 6))
    states[..., 3] += 2 * states[..., 0]
    true = rng.standard_normal((5, 6))
    half = true * [1, 1, 0, 0, 0.5, 0]
    outputs = np.einsum("nkc,dc->dnk", states, half) + 3
    counts = rng.random(outputs.shape) < 0.7
    outputs[~counts] = np.nan
    found = components.coefficients(states, outputs, counts)
    np.testing.assert_allclose(found, half, atol=1e-9)
    measured = components.by_component(true, found)
    for name, slope, r2 in (
        ("position", 1, 1),
        ("velocity", 0, 0),
        ("log m1", 0.5, 0.75),
        ("log m2", 0, 0),
    ):
        np.testing.assert_allclose(measured[name]["slope"], slope, atol=1e-9)
        np.testing.assert_allclose(measured[name]["r2"], r2, atol=1e-9)


def test_a_memory_of_sequences_has_their_masses_and_those_of_no_other_system():
    """What answers by the sequence looks as if it had the mass, until it is asked elsewhere."""
    made = histories(PROTOCOL, seed=0, n_systems=40, n_fresh=160)
    labelled = made.states[:40, :, 4]
    remembered = np.repeat(labelled[:, :1], len(made.rows), axis=1)
    np.testing.assert_allclose(remembered, labelled)
    assert made.states[made.fresh].shape == (160, len(made.rows), 6)
    seen = {tuple(row) for row in made.states[:80, 0, 4:].round(9)}
    assert not seen & {tuple(row) for row in made.states[made.fresh][:, 0, 4:].round(9)}


def test_the_linear_filter_sees_no_row_after_the_one_it_answers():
    made = histories(PROTOCOL, seed=0, n_systems=12, n_fresh=48)
    labels = np.full((12, len(made.rows)), np.nan)
    labels[:, 2:4] = made.states[:12, 2:4, 0]
    before = white_noise.linear_filter(made, labels)
    assert np.corrcoef(before[24:, 2:].ravel(), made.states[24:, 2:, 0].ravel())[0, 1] > 0.99
    row = made.rows[5]
    made.batch["coordinates"][:, row + 1 :] += 0.3
    after = white_noise.linear_filter(made, labels)
    np.testing.assert_array_equal(before[:, :6], after[:, :6])
    assert not np.allclose(before[:, 6:], after[:, 6:])


def test_the_look_up_table_answers_with_the_two_nearest_labels():
    states = np.arange(12.0).reshape(3, 4, 1)
    labels = np.full((2, 4), np.nan)
    labels[0, 0], labels[0, 3], labels[1, 3] = 1.0, 5.0, 9.0
    found = white_noise.nearest(states, labels)
    assert found.tolist() == [[3] * 4, [7] * 4, [7] * 4]
