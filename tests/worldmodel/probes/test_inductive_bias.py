"""The inductive-bias probe: equal states, published targets and measures, sharing, models, laws."""

import itertools

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from orbits import protocols
from tests.worldmodel.probes.conftest import SMALL
from tests.worldmodel.probes.evaluation import evaluate, find, interval, pieces
from tests.worldmodel.trainings import save, trainer
from worldmodel import probes
from worldmodel.data.orbits import OrbitData
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.state import StateModel
from worldmodel.probes.bias import components, inductive_bias, white_noise
from worldmodel.probes.bias.histories import histories
from worldmodel.probes.bias.measures import BINS, Calibration, extrapolation, state_bias
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.settings import Settings

ARGS = {"n_points": 16, "n_bins": 64}
PROBE = probes.get("inductive_bias")


@pytest.fixture
def load(untrained):
    """Return a function that loads a random model in a world of some law."""

    def run(kind=NextTokenModel, law="newton", **changes):
        return Checkpoint.load(untrained(kind, **{"protocol_args": ARGS, **changes}), law)

    return run


def protocol(law="newton", name="identifiable"):
    return protocols.get(name, {**ARGS, "law": law})


@pytest.mark.parametrize(
    ("law", "name"),
    [("newton", "identifiable"), ("power_1_5", "identifiable"), ("newton", "paper")],
)
def test_two_histories_reach_the_same_states(law, name):
    """What both see at the paired rows, and at the star's, differs by a constant alone."""
    made = histories(protocol(law, name), seed=3, n_systems=12, n_fresh=48)
    n, k = 12, len(made.rows)
    assert made.batch["tokens"].shape == (72, 17, 2)
    assert made.shift.min() >= 1
    assert made.shift.max() <= k // 2
    seen = made.batch["coordinates"].double().numpy()
    pairs = made.same_state()
    assert len(pairs) == np.sum(k - made.shift)
    for i in range(n):
        mine = [(a % k, b % k) for a, b in pairs if a // k == i]
        assert all(b // k == n + i for a, b in pairs if a // k == i)
        apart = [
            seen[i, made.rows[a] + body] - seen[n + i, made.rows[b] + body]
            for a, b in mine
            for body in (0, 1)
        ]
        np.testing.assert_allclose(apart, np.broadcast_to(apart[0], np.shape(apart)), atol=1e-5)
        assert np.abs(apart[0]).max() > 1e-4  # another centre of mass
    points = made.states.reshape(-1, 6)
    np.testing.assert_allclose(points[pairs[:, 0]], points[pairs[:, 1]], atol=1e-8)
    wrong = np.abs(points[pairs[:, 0]] - points[pairs[:, 1] - 1]).max(axis=1)
    assert wrong.min() > 1e-6  # no other row has that state


def test_states_are_true_and_standardised_over_the_labelled_sequences():
    made = histories(protocol("newton", "paper"), seed=0, n_systems=30, n_fresh=0)
    np.testing.assert_allclose(made.states[:30].mean(axis=(0, 1)), 0, atol=1e-9)
    np.testing.assert_allclose(made.states[:30].std(axis=(0, 1)), 1, atol=1e-9)
    # The published states of "paper" have neither the right place nor the right velocity.
    world = protocol("newton", "paper").systems(0, "test", range(30), "force")
    slow = np.flatnonzero(world.semi_major_axis[:, 0] > 12)
    seen = made.batch["coordinates"].double().numpy()[slow, 1:]
    place = seen[:, 0::2] - seen[:, 1::2]
    velocity = (place[:, 2:] - place[:, :-2]) / made_dt(world)[slow, None, None]
    for axis in range(2):
        states = made.states[slow]
        assert correlation(states[..., axis], place[..., axis]) > 1 - 1e-9
        assert correlation(states[:, 1:-1, 2 + axis], velocity[..., axis]) > 0.999


def made_dt(world):
    return 2 * np.asarray(protocol("newton", "paper").dts)[world.dt_index]


def correlation(a, b):
    return np.corrcoef(a.ravel(), b.ravel())[0, 1]


def test_projections_are_linear_and_keep_the_order_of_distances():
    rng = np.random.default_rng(0)
    states = rng.standard_normal((20, 8, 6)) * [3, 1, 1, 1, 1, 1]
    targets = white_noise.draw_targets("projection", states, rng)
    np.testing.assert_allclose([targets.mean(), targets.std()], [0, 1], atol=1e-9)
    points = np.column_stack([states.reshape(-1, 6), np.ones(160)])
    left = np.linalg.lstsq(points, targets.ravel(), rcond=None)[1]
    assert left < 1e-18
    distances = pdist(points)

    def agreement(values):
        return spearmanr(distances, pdist(values.reshape(-1, 1))).statistic

    others = [agreement(points[:, :6] @ rng.standard_normal(6)) for _ in range(20)]
    assert agreement(targets) > np.quantile(others, 0.8)


@pytest.mark.full
def test_any_direction_has_as_much_of_each_component_and_the_chosen_one_has_not():
    made = histories(protocol(), seed=0, n_systems=60, n_fresh=0)
    rng, states = np.random.default_rng(0), made.states[:60]
    everywhere = np.ones((8, *states.shape[:2]), bool)
    shares = {}
    for kind in ("direction", "projection"):
        targets = np.stack([white_noise.draw_targets(kind, states, rng) for _ in range(8)])
        np.testing.assert_allclose(targets.std(axis=(1, 2)), 1, atol=1e-9)
        squares = components.coefficients(states, targets, everywhere) ** 2
        shares[kind] = (squares / squares.sum(axis=1, keepdims=True)).mean(axis=0)[4:].sum()
    assert 0.15 < shares["direction"] < 0.55
    assert shares["projection"] < 0.5 * shares["direction"]


def test_random_targets_are_bits_and_labels_are_two_rows_of_each_sequence():
    rng = np.random.default_rng(0)
    targets = white_noise.draw_targets("random", np.zeros((50, 40, 6)), rng)
    assert set(np.unique(targets)) == {-1.0, 1.0}
    assert abs(targets.mean()) < 0.1
    labels = white_noise.draw_labels(targets, rng)
    there = np.isfinite(labels)
    assert np.all(there.sum(axis=1) == 2)
    np.testing.assert_array_equal(labels[there], targets[there])
    assert there.any(axis=0).mean() > 0.8


@pytest.mark.full
def test_oracles_extrapolate_by_the_state_and_the_mlp_beyond_lines():
    rng = np.random.default_rng(0)
    states = rng.standard_normal((60, 10, 6))
    line, bend = states @ rng.standard_normal(6), np.abs(states[..., 0])
    for targets, linear_is_enough in ((line, True), (bend, False)):
        labels = white_noise.draw_labels(targets[:50], rng)
        linear = white_noise.linear_oracle(states, labels)
        mlp = white_noise.mlp_oracle(states, labels, seed=0)
        errors = [np.mean((x - targets) ** 2) / targets.var() for x in (linear, mlp)]
        assert (errors[0] < 1e-20) == linear_is_enough
        assert errors[1] < 0.2 < errors[0] or linear_is_enough


def test_r_ib_and_d_ib_are_those_of_the_published_loops():
    rng = np.random.default_rng(0)
    state = rng.integers(0, 12, 40)
    same = np.array([p for p in itertools.combinations(range(40), 2) if len({*state[[*p]]}) == 1])
    outputs = [rng.standard_normal(12)[state] + 0.8 * rng.standard_normal(40) for _ in range(7)]
    together, apart = [], []
    for output in outputs:
        pairs = list(itertools.combinations(range(40), 2))
        loss = {(i, j): float((output[i] > 0) != (output[j] > 0)) for i, j in pairs}
        together.append(np.mean([1 - 2 * loss[p] for p in pairs if state[p[0]] == state[p[1]]]))
        apart.append(np.mean([2 * loss[p] for p in pairs if state[p[0]] != state[p[1]]]))
    found = state_bias(outputs, same)
    for name, values in (("r_ib", together), ("d_ib", apart)):
        assert found[name][0] == pytest.approx(np.mean(values))
        error = np.std(values, ddof=1) / np.sqrt(7)
        assert found[f"{name}_standard_error"] == pytest.approx(error)
        assert found[name][1] < found[name][0] < found[name][2]
        assert found[name][2] - found[name][1] == pytest.approx(2 * 1.96 * error, rel=0.35)
    assert state_bias([np.ones(40)] * 2, same)["d_ib"] == (0, 0, 0)


def test_calibration_is_that_of_the_published_bins_over_all_datasets():
    rng = np.random.default_rng(0)
    oracle = list(rng.standard_normal((5, 60)))
    model = [0.5 * x + 0.2 * rng.standard_normal(60) for x in oracle]
    of_oracle = np.mean([pdist(x[:, None]) for x in oracle], axis=0)
    of_model = np.mean([pdist(x[:, None]) for x in model], axis=0)
    edges = np.linspace(of_oracle.min(), of_oracle.max(), BINS + 1)
    expected, differences = [], []
    for low, high in itertools.pairwise(edges):
        # The code leaves out the two pairs on the outermost edges, too.
        inside = (of_oracle >= low) & ((of_oracle < high) | (high == edges[-1]))
        if inside.any():
            expected.append([of_oracle[inside].mean(), of_model[inside].mean(), inside.sum()])
            differences.append(abs(expected[-1][0] - expected[-1][1]))
    error, curve = Calibration(oracle).of(model)
    assert error[0] == pytest.approx(np.mean(differences))
    assert error[1] < error[0] < error[2]
    drawn = np.array([curve["oracle"], curve["model"], curve["pairs"]]).T
    np.testing.assert_allclose(drawn, expected)
    assert Calibration(oracle).of(oracle)[0] == (0, 0, 0)
    assert Calibration(oracle).of([7 * model[0], *model[1:]])[0][0] != pytest.approx(error[0])


def test_extrapolation_counts_unlabelled_points_alone():
    targets = [np.array([[1.0, -1.0, 2.0]]), np.array([[-2.0, 0.0, 0.5]])]
    outputs = [np.array([[9.0, -1.0, 1.0]]), np.array([[-2.0, 1.0, 9.0]])]
    free = [np.array([[False, True, True]]), np.array([[True, True, False]])]
    assert extrapolation(outputs, targets, free)[0] == pytest.approx(1 - 2 / 9)


@pytest.fixture(scope="module")
def noise():
    made = histories(protocol(), seed=0, n_systems=6, n_fresh=24)
    rng = np.random.default_rng(1)
    targets = white_noise.draw_targets("projection", made.states[:6], rng)
    return made, white_noise.draw_labels(targets, rng)


@pytest.mark.full
def test_fine_tuning_starts_from_the_checkpoint_and_moves_all_weights(load, noise):
    made, labels = noise
    start = load().model
    before = {name: value.clone() for name, value in start.state_dict().items()}
    model = white_noise.WhiteNoiseModel(start, seed=0)
    with torch.no_grad():
        torch.testing.assert_close(model.hidden(made.batch), start.hidden(made.batch))
    decay = {
        id(p): group["weight_decay"]
        for group in model.configure_optimizers().param_groups
        for p in group["params"]
    }
    assert {decay[id(p)] for p in model.parameters() if p.dim() >= 2} == {0.1}
    assert {decay[id(p)] for p in model.parameters() if p.dim() < 2} == {0.0}

    tuned = []
    kept = white_noise.WhiteNoiseModel.on_train_end
    white_noise.WhiteNoiseModel.on_train_end = lambda self: tuned.append(self)
    try:
        outputs = [white_noise.extrapolate(start, made, labels, 60, seed) for seed in (0, 0, 1)]
    finally:
        white_noise.WhiteNoiseModel.on_train_end = kept
    after = dict(tuned[0].named_parameters())
    assert all(not after[name].equal(before[name]) for name in after if "head" not in name)
    for name, value in start.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])
    there = np.isfinite(labels)
    assert outputs[0].shape == (36, len(made.rows))
    untuned = white_noise.extrapolate(start, made, labels, 1, 0)
    errors = [np.mean((x[:6][there] - labels[there]) ** 2) for x in (untuned, outputs[0])]
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "law", "target"),
    [
        (NextTokenModel, "power_1_5", "projection"),
        (ForceModel, "newton", "random"),
        (StateModel, "newton", "projection"),
    ],
)
def test_results_of_every_model(untrained, tmp_path, kind, law, target):
    path = untrained(kind, protocol_args=ARGS)
    settings = Settings(n_sequences=6, datasets=2, steps=2, white_noise=target, law=law)
    results = evaluate("inductive_bias", path, settings, tmp_path)
    names = [
        ("softmax", Checkpoint.load(path).arm),
        ("softmax", "untrained"),
        ("linear oracle", "oracle"),
        ("MLP oracle", "oracle"),
        ("2-NN on the true state", "control"),
        ("linear filter", "control"),
    ]
    pooled, single = results[:6], results[6:]
    # Of bits there are no components; of sums the four of each kind of sequence, and all of them.
    assert [(x.case.variant, x.case.arm) for x in single] == names * 9 * (target == "projection")
    for result in single:
        assert result.case.setting["sequences"] in ("labelled", "fresh")
    for result in (x for x in single if x.case.variant == "linear oracle"):
        assert interval(result, "r2") == pytest.approx((1, 1, 1))
    assert [(x.case.variant, x.case.arm) for x in pooled] == names
    for result in pooled:
        assert result.case.setting["interval"] == "over 2 datasets"
        for name in ("r_ib", "d_ib", "mae_linear", "mae_mlp", "r2"):
            value, low, high = interval(result, name)
            assert low <= value <= high
    for result in results[2:5]:
        assert interval(result, "r_ib") == (1, 1, 1)  # functions of the state
    assert interval(results[2], "mae_linear") == (0, 0, 0)
    for picture in PROBE.draw(results, tmp_path):
        assert picture.images[0].stat().st_size > 10_000


def keys(checkpoint, **changes):
    """Return the addresses of the datasets and of the untrained twin's outputs."""
    settings = Settings(**{"n_sequences": 6, "datasets": 3, "seeds": (0,), **changes})
    return [cell.key for cell in PROBE.needs(checkpoint, settings).values()]


def test_checkpoints_of_one_world_share_datasets_and_an_untrained_twin(load):
    noise, twin = keys(load())
    assert keys(load(StateModel)) == [noise, twin]
    elsewhere = keys(load(law="power_1_5"))
    assert noise != elsewhere[0]
    assert twin != elsewhere[1]
    sharp = load(attention="lssar", attention_args={"p": 3.0})
    other = keys(sharp)
    assert other[0] == noise
    sharper = load(attention="lssar", attention_args={"p": 5.0})
    assert len({twin, other[1], keys(sharper)[1]}) == 3, "of the same weights"
    assert keys(load(), seeds=(1,))[0] != noise
    assert keys(load(), steps=7) == [noise, keys(load(), steps=7)[1]] != [noise, twin]


def test_a_twin_has_the_weights_of_an_untrained_checkpoint(load):
    for kind in (NextTokenModel, StateModel):
        checkpoint = load(kind)
        expected = checkpoint.untrained(3)
        found = inductive_bias.untrained(checkpoint.architecture, checkpoint.control_seed(3))
        for part in ("embedding", "gpt"):
            weights = dict(getattr(expected, part).state_dict())
            for name, value in getattr(found, part).state_dict().items():
                torch.testing.assert_close(value, weights[name], rtol=0, atol=0)


def test_finished_datasets_are_kept_and_starts_take_turns(load, tmp_path, monkeypatch, noise):
    made, labels = noise
    done = []

    def answer(start, made, labels, steps, seed):
        done.append((seed, start.hparams["attention"]))
        if seed == 2 and len(done) == 3:
            raise ValueError("interrupted")
        return np.full((12, len(made.rows)), float(seed))

    monkeypatch.setattr(inductive_bias, "extrapolate", answer)
    starts = [load().model, load(attention="lssar", attention_args={"p": 3.0}).model]
    place, three = pieces(tmp_path), np.stack([labels] * 3)
    with pytest.raises(ValueError, match="interrupted"):
        inductive_bias.tuned(starts, made, three, 2, place)
    output = inductive_bias.tuned(starts, made, three, 2, place)
    assert done == [(0, "softmax"), (1, "lssar"), (2, "softmax"), (2, "softmax")]
    assert output[:, 0, 0].tolist() == [0, 1, 2]


def test_a_world_without_states_is_refused(load):
    assert "no two-body states" in PROBE.refusal(load(protocol="nbody"), Settings())
    assert PROBE.refusal(load(), Settings()) is None


def test_a_model_that_saw_labels_of_the_test_sequences_is_refused(load):
    leaked = load(ForceModel, protocol_args={**ARGS, "label_leak": 2})
    assert "label_leak=2" in PROBE.refusal(leaked, Settings())


@pytest.mark.full
def test_a_model_that_knows_the_state_is_between_the_oracle_and_its_untrained_twin(tmp_path):
    torch.manual_seed(0)
    model = StateModel(**{**SMALL, "protocol_args": ARGS, "n_layer": 2, "head_dim": 16})
    learns = trainer(tmp_path, 400, limit_val_batches=0)
    learns.fit(model, OrbitData(protocol_args=ARGS, population="force"))
    path = save(model, tmp_path / "state.ckpt")
    results = evaluate(
        "inductive_bias", path, Settings(n_sequences=40, datasets=4), tmp_path / "out"
    )
    names = {"state-trained": "softmax", "untrained": "softmax", "oracle": "linear oracle"}
    pooled = [result for result in results if "r_ib" in result.metrics]
    state, untrained, oracle = (
        find(pooled, arm=arm, variant=name).metrics for arm, name in names.items()
    )
    assert oracle["r_ib"].value == 1
    assert state["r_ib"].low > untrained["r_ib"].high
    assert state["mae_linear"].high < untrained["mae_linear"].low
    assert state["r2"].low > untrained["r2"].high
    assert all(abs(found["d_ib"].value - 1) < 0.05 for found in (state, untrained, oracle))
