"""What worlds asks: S of made-up continuations, the leak test's systems, proper scores."""

import dataclasses

import numpy as np
import pytest
import torch

from benchmarks.worlds.asked import AHEAD, Asked, load_truths, save_truths
from benchmarks.worlds.cells import _places, continuation
from benchmarks.worlds.readout import ReadOut, most_telling, scores
from benchmarks.worlds.steps import _measured, observed
from orbits import observation, protocols
from orbits.laws.family import power_name
from orbits.mixture import spread
from worldmodel.models.mixture import MixtureModel

PROTOCOL = protocols.get("neutral_step")


@pytest.fixture(scope="module")
def asked():
    tested = [{"exponent": x, "held_out": x == -2} for x in (-2.5, -2.0, -1.5)]
    return Asked.of(PROTOCOL.config(), tested, [4, 12], 40)


@pytest.fixture(scope="module")
def truth(asked):
    return asked.own_path({"prompt": 12}, lambda test, rows: test.observed)


def one_law(test, rows):
    """Continue by the orbits of r^-2, whatever the world of the prompt."""
    newton = dataclasses.replace(test.protocol, law=power_name(2))
    points, _ = observation.observe(test.world, newton.dts, newton.n_points, power_name(2))
    return points


def test_true_orbits_infer_their_law_and_one_law_for_all_does_not(asked, truth):
    own = asked.measured(truth, truth[0])
    assert own["S"] == pytest.approx((1, 1, 1))
    assert own["exponent@-1.5"].value == pytest.approx(-1.5, abs=0.05)
    assert abs(own["bias@-2"].value) < 0.05
    assert own["error@trained"].value < PROTOCOL.tokens.width
    imposed = asked.measured(asked.own_path({"prompt": 12}, one_law), truth[0])
    assert imposed["S"].value == pytest.approx(0, abs=0.05)
    assert imposed["S"].low <= imposed["S"].value <= imposed["S"].high
    for world in ("-2.5", "-2", "-1.5"):
        assert imposed[f"exponent@{world}"].value == pytest.approx(-2, abs=0.05)
    assert imposed["error@trained"].value > 0.1


def test_in_another_family_the_exponent_of_true_orbits_is_the_unit():
    tested = [
        {"law": f"softened_length_{x:g}", "parameter": x, "held_out": x == 0.7}
        for x in (0.1, 0.7, 1.6)
    ]
    asked = Asked.of(PROTOCOL.config(), tested, [12], 30)
    truth = asked.own_path({"prompt": 12}, lambda test, rows: test.observed)
    own = asked.measured(truth, truth[0])
    assert own["S"] == pytest.approx((1, 1, 1))
    assert own["exponent@0.1"].value < -1.8 < -0.5 < own["exponent@1.6"].value
    imposed = asked.measured(asked.own_path({"prompt": 12}, one_law), truth[0])
    assert imposed["S"].value == pytest.approx(0, abs=0.1)
    assert set(imposed) == set(own) == {
        *("S", "exponent@0.1", "exponent@0.7", "exponent@1.6", "bias@0.7"),
        *("error@trained", "error@held-out"),
    }  # fmt: skip


def test_the_bias_is_the_distance_from_the_line_of_the_others(asked, truth):
    (value, drawn), errors = truth
    off = np.array([0.0, 0.3, 0.0])
    moved = (value + off, drawn + off[:, None]), errors
    before, after = (asked.measured(x, truth[0])["bias@-2"] for x in (truth, moved))
    assert np.subtract(after, before) == pytest.approx(0.3)


def test_only_so_many_steps_are_read_and_none_of_them_before_the_prompt_ends(asked):
    def wild(test, rows):
        points = test.observed.copy()
        points[:, 1 + 2 * (4 + AHEAD) :] = 3.9
        points[:, 1:5] = -3.9
        return points

    plain = asked.own_path({"prompt": 4}, lambda test, rows: test.observed)
    changed = asked.own_path({"prompt": 4}, wild)
    # The spline along the path knows of earlier places, a little.
    assert changed[0][0] == pytest.approx(plain[0][0], abs=0.1)
    assert [x.tolist() for x in changed[1]] == [x.tolist() for x in plain[1]]


def test_the_leak_test_halves_each_step_that_has_a_token(asked):
    for whole, half in zip(asked.worlds, asked.halved, strict=True):
        there = whole.world.dt_index > 0
        assert half.batch["dt"] == pytest.approx(whole.batch["dt"][there] / 2)
        # Every other step is seen where the whole step sees it.
        np.testing.assert_allclose(
            half.batch["coordinates"][:, 1:48:4], whole.batch["coordinates"][there, 1:25:2]
        )


def test_truths_come_back_as_they_were_kept(asked, truth, tmp_path):
    save_truths(tmp_path, [truth[0], truth[0]])
    for found in load_truths(tmp_path):
        for one, other in zip(found, truth[0], strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_changed_protocol_is_refused():
    world = {**PROTOCOL.config(), "n_points": 40}
    with pytest.raises(ValueError, match="not that of the cell's address"):
        Asked.of(world, [], [4], 2)


def normal(grid, mean, sd):
    density = np.exp(-((grid - mean) ** 2) / (2 * sd**2))
    return density / np.trapezoid(density, grid)


def test_scores_are_those_of_a_normal_distribution():
    grid = np.linspace(-3, 1, 2001)
    found = scores(grid, np.stack([normal(grid, -1, 0.2)] * 3), np.array([-1.0, -0.9, -0.5]))
    expected = -np.log(0.2 * np.sqrt(2 * np.pi)) - np.array([0, 0.5, 2.5]) ** 2 / 2
    assert found["log_score"] == pytest.approx(expected, abs=1e-3)
    # Gneiting and Raftery (2007), equation 21, at the mean.
    assert found["crps"][0] == pytest.approx(0.2 * (np.sqrt(2) - 1) / np.sqrt(np.pi), abs=1e-3)
    assert np.all(np.diff(found["crps"]) > 0)
    assert found["coverage"].tolist() == [1, 1, 0]


def test_scores_are_proper():
    grid, rng = np.linspace(-4, 2, 601), np.random.default_rng(0)
    truth = rng.normal(-1, 0.3, 2000)
    honest, bold, shy = (
        scores(grid, np.broadcast_to(normal(grid, -1, sd), (2000, 601)), truth)
        for sd in (0.3, 0.15, 0.6)
    )
    for other in (bold, shy):
        assert honest["log_score"].mean() > other["log_score"].mean()
        assert honest["crps"].mean() < other["crps"].mean()
    assert honest["coverage"].mean() == pytest.approx(0.9, abs=0.03)


@pytest.mark.full
def test_a_read_out_knows_where_states_tell_little():
    rng = np.random.default_rng(0)
    states, exponents = rng.normal(size=(3000, 6)), rng.uniform(-2.75, 0.25, 3000)
    noise = np.exp(-1.5 + 0.7 * states[:, 1])
    states[:, 0] = exponents + noise * rng.normal(size=3000)
    fitted = ReadOut(states[:2000], exponents[:2000], -2.75, 0.25)
    found = scores(fitted.grid, fitted.density(states[2000:]), exponents[2000:])
    assert found["log_score"].mean() > -np.log(3) + 0.5, "a flat posterior has -ln 3"
    assert found["coverage"].mean() == pytest.approx(0.9, abs=0.06)
    sure = states[2000:, 1] < 0
    assert found["crps"][sure].mean() < found["crps"][~sure].mean()


def test_a_read_out_of_states_that_tell_nothing_scores_as_a_flat_posterior():
    rng = np.random.default_rng(0)
    laws = spread(-2.75, 0.25, (-2.2, -1.8, -1.2, -0.8), 64)
    states, exponents = rng.normal(size=(1500, 20)), rng.choice(laws, 1500)
    fitted = ReadOut(states[:500], exponents[:500], -2.75, 0.25)
    found = scores(fitted.grid, fitted.density(states[500:]), exponents[500:])
    assert found["log_score"].mean() == pytest.approx(-np.log(3), abs=0.01)
    assert found["coverage"].mean() == pytest.approx(0.9, abs=0.06)


def test_the_layer_that_tells_most_is_read():
    rng = np.random.default_rng(0)
    exponents = rng.uniform(-2.75, 0.25, 600)
    noise = rng.normal(size=(600, 8))
    told = noise + np.where(np.arange(8) == 2, exponents[:, None], 0)
    layers = {"embedding": rng.normal(size=(600, 8)), "block 1": told, "block 2": told + 2 * noise}
    layer, fitted, explained = most_telling(layers, exponents, -2.75, 0.25)
    assert layer == "block 1"
    assert fitted.explained == explained["block 1"]
    # The best linear guess explains var / (var + 1), as the noise has variance 1.
    assert explained["block 1"] == pytest.approx(0.75 / 1.75, abs=0.06)
    assert abs(explained["embedding"]) < 0.05


def test_the_shape_of_a_prompt_has_no_size_and_no_direction():
    world = dataclasses.replace(PROTOCOL, law=power_name(1.5))
    points = world.batch(0, "test", np.arange(5))["coordinates"][:, 1:25]
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    one, other = _places(points), _places(0.5 * points @ turn.T + 0.3)
    np.testing.assert_allclose(one[:, :-1], other[:, :-1], atol=1e-12)
    np.testing.assert_allclose(one[:, -1] + np.log(0.5), other[:, -1], atol=1e-12)


def test_single_steps_of_the_truth_are_the_unit(asked):
    found = _measured(asked, [test.observed for test in asked.worlds])
    assert found["S"].value == pytest.approx(1)
    exact = _measured(asked, [test.batch["coordinates"] for test in asked.worlds])
    for value in asked.values:
        assert exact[f"exponent@{value:g}"].value == pytest.approx(value, abs=0.02)
        assert exact[f"missed@{value:g}"].value == pytest.approx(0, abs=1e-6)


def test_a_told_model_sees_the_exponent_of_each_world_and_others_do_not(asked):
    for test, value in zip(asked.worlds, asked.values, strict=True):
        assert observed(asked, test, True)["coordinates"][0, 0, 0] == pytest.approx(value)
        same = observed(asked, test, False)["coordinates"]
        np.testing.assert_array_equal(same, test.batch["coordinates"])


def test_a_continuation_begins_with_the_observed_points(asked):
    torch.manual_seed(0)
    settings = {"protocol": "neutral_step", "n_layer": 1, "head_dim": 8, "n_head": 1}
    model = MixtureModel([-2.0], **settings).eval()
    test = asked.worlds[0]
    shown = {name: test.batch[name] for name in ("tokens", "coordinates")}
    points = continuation(model, test, shown, 9)
    np.testing.assert_allclose(points[:, :9], test.observed[:, :9], atol=1e-6)
    assert points.shape == (40, 9 + 2 * AHEAD, 2)
    tokens = PROTOCOL.tokens
    assert np.abs(points[:, 9:]).max() > tokens.width, "places in AU, not numbers of bins"
