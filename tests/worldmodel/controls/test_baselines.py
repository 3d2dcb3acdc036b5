"""Law-free baselines: one interface, the past alone for those that read tokens, finite answers."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from orbits import protocols
from worldmodel.controls.baselines import BASELINES, OBSERVERS, TABLES, fit_baseline
from worldmodel.controls.flat_mlp import flat_mlp
from worldmodel.controls.force_regression import ForceRegression
from worldmodel.controls.linear_filter import linear_filter
from worldmodel.controls.log_linear import log_linear
from worldmodel.controls.rbf import radial_basis
from worldmodel.controls.spline import tensor_spline
from worldmodel.controls.trees import boosted_trees
from worldmodel.controls.true_state import at_star, distance_and_masses
from worldmodel.controls.true_state_knn import nearest_states
from worldmodel.data.orbits import OrbitData

pytestmark = pytest.mark.full

PROTOCOL = protocols.get("identifiable")
UNFITTED = {**BASELINES, "flat MLP": lambda protocol, seed: flat_mlp(protocol, 60, 100, seed=seed)}
"""The network takes fewer steps here."""


def data(n_train, **changes):
    arguments = {"population": "force", "n_train": n_train, "n_test": 20, "n_val": 2}
    return OrbitData(**arguments | changes)


@pytest.fixture(scope="module")
def labelled():
    return list(data(60).labelled_dataloader())


@pytest.fixture(scope="module")
def test_set():
    return list(data(60).test_dataloader())


@pytest.fixture(scope="module")
def fitted(labelled):
    return {name: make(PROTOCOL, 0).fit(labelled) for name, make in UNFITTED.items()}


def error(columns):
    return columns["force_predicted"].double().log() - columns["force"].double().log()


@pytest.mark.parametrize("name", BASELINES)
def test_each_answers_every_asked_row_the_same_again(fitted, test_set, name):
    first, again = (fitted[name].columns(test_set) for _ in range(2))
    assert first["force_predicted"].shape == (20 * 12,)
    for column in first:
        assert torch.equal(first[column], again[column]), column
    length = first["force_vector_predicted"].norm(dim=-1)
    torch.testing.assert_close(length, first["force_predicted"])


@pytest.mark.parametrize("name", OBSERVERS)
def test_what_reads_tokens_sees_the_past_alone(fitted, test_set, name):
    """The row of step 18 is answered before its star, and all that follows, is seen."""
    later = {**test_set[0], "tokens": test_set[0]["tokens"].clone()}
    later["tokens"][:, 38:] = 511 - later["tokens"][:, 38:]
    later["state"] = torch.full_like(later["state"], torch.nan)
    answers = fitted[name].columns(test_set)
    other = fitted[name].columns([later])
    before = answers["step"] <= 18
    for column in ("force_predicted", "force_vector_predicted"):
        assert torch.equal(answers[column][before], other[column][before])
        if name != "linear filter" or column != "force_predicted":
            assert not torch.equal(answers[column], other[column]), "later rows see the change"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", OBSERVERS)
def test_leaked_labels_before_anything_was_seen_are_left_out(test_set, name):
    leaked = data(10, protocol_args={"label_leak": 2}).labelled_dataloader()
    columns = UNFITTED[name](PROTOCOL, 0).fit(leaked).columns(test_set)
    assert columns["force_predicted"].isfinite().all()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_reads_no_token(fitted, test_set, name):
    blind = [{**test_set[0], "tokens": torch.zeros_like(test_set[0]["tokens"])}]
    answers, other = fitted[name].columns(test_set), fitted[name].columns(blind)
    assert torch.equal(answers["force_predicted"], other["force_predicted"])


@pytest.mark.parametrize("name", BASELINES)
def test_far_outside_the_box_answers_are_finite_and_positive(fitted, test_set, name):
    far = {key: value.clone() for key, value in test_set[0].items()}
    far["state"] *= torch.tensor([1e3, 1e3, 1e-3, 1e-3, 1e4, 1e-4])
    far["tokens"][:, 1:] = torch.randint(512, far["tokens"][:, 1:].shape)
    columns = fitted[name].columns([far])
    assert columns["force_predicted"].isfinite().all()
    assert (columns["force_predicted"] > 0).all()
    assert columns["force_vector_predicted"].isfinite().all()


@pytest.mark.parametrize("name", OBSERVERS)
def test_bodies_in_one_bin_have_a_force(fitted, test_set, name):
    """Where both have left the box they are seen at one place."""
    met = {key: value.clone() for key, value in test_set[0].items()}
    met["tokens"][:, 1:] = 511
    columns = fitted[name].columns([met])
    assert columns["force_predicted"].isfinite().all()
    assert (columns["force_predicted"] > 0).all()


def test_a_log_linear_regression_of_the_true_state_is_the_power_law(labelled, test_set):
    """The frame adds nothing of its own: from ln r, ln m1, ln m2 it recovers F exactly."""

    def features(batch):
        return np.log(distance_and_masses(batch))

    baseline = ForceRegression(features, LinearRegression(), direction=at_star, least_rows=4)
    columns = baseline.fit(labelled).columns(test_set)
    np.testing.assert_allclose(baseline.regressor.coef_, [-2, 1, 1], atol=1e-5)
    np.testing.assert_allclose(columns["force_predicted"], columns["force"], rtol=1e-4)
    np.testing.assert_allclose(
        columns["force_vector_predicted"], columns["force_vector"], rtol=1e-3, atol=1e-4
    )


def test_motion_tells_the_masses_and_geometry_needs_the_time_step(fitted, test_set):
    spread = {name: error(fitted[name].columns(test_set)).std().item() for name in OBSERVERS}
    assert spread["log-linear of motion"] < 0.6
    assert spread["log-linear of geometry"] > 1
    assert spread["log-linear of geometry and time step"] < 0.9
    assert spread["log-linear filter"] < 0.5 * spread["linear filter"]


def test_neighbours_are_those_of_a_brute_force_search(labelled, test_set):
    known, asked = (_states(batches) for batches in (labelled, test_set))
    mean, std = known[0].mean(0), known[0].std(0)
    states, questions = (known[0] - mean) / std, (asked[0] - mean) / std
    distance = ((questions[:, None] - states) ** 2).sum(-1)
    nearest = np.argsort(distance, axis=1)[:, :5]
    expected = known[1][nearest].mean(axis=1)
    columns = nearest_states(5).fit(labelled).columns(test_set)
    np.testing.assert_allclose(columns["force_predicted"].log(), expected, rtol=1e-4, atol=1e-4)


def _states(batches):
    """Return position, velocity, ln masses and ln F of the asked rows, read one by one."""
    states, targets = [], []
    for batch in batches:
        for row in zip(*np.nonzero(np.isfinite(batch["force"][..., 0].numpy())), strict=True):
            state = batch["state"][row].double().numpy()
            states.append([*state[:4], *np.log(state[4:])])
            targets.append(np.log(np.hypot(*batch["force"][row].double().numpy())))
    return np.array(states), np.array(targets)


@pytest.mark.parametrize(
    ("make", "bound"), [(boosted_trees, 0.5), (radial_basis, 0.1), (tensor_spline, 0.1)]
)
def test_tables_are_close_inside_the_box_and_stand_still_outside(labelled, test_set, make, bound):
    table = make().fit(labelled)
    assert error(table.columns(test_set)).std() < bound
    far, farther = ({**test_set[0], "state": test_set[0]["state"].clone()} for _ in range(2))
    far["state"][..., 4:] *= 1e3
    farther["state"][..., 4:] *= 1e6
    answers = [table.columns([batch])["force_predicted"] for batch in (far, farther)]
    torch.testing.assert_close(*answers, msg="no exponent of the masses is left")


def test_a_network_learns_and_depends_on_its_seed_alone(labelled, test_set):
    answers = [
        flat_mlp(PROTOCOL, 60, 100, seed=seed).fit(labelled).columns(test_set) for seed in (0, 0, 1)
    ]
    assert torch.equal(answers[0]["force_predicted"], answers[1]["force_predicted"])
    assert not torch.equal(answers[0]["force_predicted"], answers[2]["force_predicted"])
    true = answers[0]["force"].log()
    assert error(answers[0]).square().mean() < 0.8 * (true - true.mean()).square().mean()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nearest_states(0), "k must be at least 1, got 0"),
        (lambda: boosted_trees(0), "n_trees must be at least 1"),
        (lambda: radial_basis(0), "n_centres must be at least 1"),
        (lambda: tensor_spline(1), "n_knots must be at least 2"),
        (lambda: flat_mlp(PROTOCOL, steps=0), "steps must be at least 1"),
        (lambda: flat_mlp(PROTOCOL, rows=0), "rows must be at least 1"),
        (lambda: log_linear(PROTOCOL, "mass"), "unknown numbers 'mass'; choose from motion"),
        (lambda: log_linear(PROTOCOL, lag=0), "lag must be at least 1"),
        (lambda: log_linear(PROTOCOL, lag=6), "needs 13 steps .* n_points must be at least 49"),
        (
            lambda: linear_filter(protocols.get("identifiable", {"n_points": 44})),
            "needs 12 steps before the first force.* has 11; n_points must be at least 45",
        ),
        (lambda: fit_baseline("oracle", data(5)), "unknown baseline 'oracle'; choose from"),
        (lambda: fit_baseline("log-linear of motion", data(None)), "n_train must be a number"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("baseline", "least"),
    [(nearest_states(13), 13), (radial_basis(20), 20), (tensor_spline(2), 125)],
)
def test_fewer_rows_than_neighbours_or_parameters_are_refused(baseline, least):
    with pytest.raises(ValueError, match=f"at least {least} labelled rows, got 12"):
        baseline.fit(data(1).labelled_dataloader())
