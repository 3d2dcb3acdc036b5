"""The inductive-bias probe: equal states, published targets and measures, resume, tasks, laws."""

import itertools
import warnings

import lightning
import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from orbits import protocols
from worldmodel.data import OrbitData
from worldmodel.probes import _white_noise as white_noise
from worldmodel.probes import get, inductive_bias
from worldmodel.probes._bias_histories import histories
from worldmodel.probes._bias_measures import BINS, Calibration, extrapolation, state_bias
from worldmodel.probing import Settings, Store, Subject
from worldmodel.state_task import StateTask
from worldmodel.tasks import ForceTask, NextTokenTask

ARGS = {"n_points": 16, "n_bins": 64}
SMALL = {"protocol_args": ARGS, "n_layer": 1, "n_head": 2, "head_dim": 8}


@pytest.fixture(autouse=True)
def quiet():
    warnings.simplefilter("ignore")


def subject(tmp_path, kind=NextTokenTask, law="newton", **changes):
    torch.manual_seed(0)
    task = kind(**SMALL | changes).eval()
    return Subject(tmp_path / "a.ckpt", "0" * 64, task, seed=0, steps=1, law=law)


def protocol(law="newton", name="identifiable"):
    return protocols.get(name, {**ARGS, "law": law})


@pytest.mark.parametrize(
    ("law", "name"),
    [("newton", "identifiable"), ("power_1_5", "identifiable"), ("newton", "paper")],
)
def test_two_histories_reach_the_same_states(law, name):
    """What both see at the paired rows, and at the star's, differs by a constant alone."""
    made = histories(protocol(law, name), seed=3, n_systems=12)
    n, k = 12, len(made.rows)
    assert made.batch["tokens"].shape == (24, 17, 2)
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
    made = histories(protocol("newton", "paper"), seed=0, n_systems=30)
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
    assert state_bias([np.ones(40)] * 2, same)["d_ib"] == [0, 0, 0]


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
    assert Calibration(oracle).of(oracle)[0] == [0, 0, 0]
    assert Calibration(oracle).of([7 * model[0], *model[1:]])[0][0] != pytest.approx(error[0])


def test_extrapolation_counts_unlabelled_points_alone():
    targets = [np.array([[1.0, -1.0, 2.0]]), np.array([[-2.0, 0.0, 0.5]])]
    outputs = [np.array([[9.0, -1.0, 1.0]]), np.array([[-2.0, 1.0, 9.0]])]
    free = [np.array([[False, True, True]]), np.array([[True, True, False]])]
    assert extrapolation(outputs, targets, free)[0] == pytest.approx(1 - 2 / 9)


@pytest.fixture(scope="module")
def noise():
    made = histories(protocol(), seed=0, n_systems=6)
    rng = np.random.default_rng(1)
    targets = white_noise.draw_targets("projection", made.states[:6], rng)
    return made, white_noise.draw_labels(targets, rng)


def test_fine_tuning_starts_from_the_checkpoint_and_moves_all_weights(tmp_path, noise):
    made, labels = noise
    task = subject(tmp_path).task
    before = {name: value.clone() for name, value in task.state_dict().items()}
    model = white_noise.WhiteNoiseTask(task, seed=0)
    with torch.no_grad():
        torch.testing.assert_close(model.hidden(made.batch), task.hidden(made.batch))
    decay = {
        id(p): group["weight_decay"]
        for group in model.configure_optimizers().param_groups
        for p in group["params"]
    }
    assert {decay[id(p)] for p in model.parameters() if p.dim() >= 2} == {0.1}
    assert {decay[id(p)] for p in model.parameters() if p.dim() < 2} == {0.0}

    tuned = []
    kept = white_noise.WhiteNoiseTask.on_train_end
    white_noise.WhiteNoiseTask.on_train_end = lambda self: tuned.append(self)
    try:
        outputs = [white_noise.extrapolate(task, made, labels, 60, seed) for seed in (0, 0, 1)]
    finally:
        white_noise.WhiteNoiseTask.on_train_end = kept
    after = dict(tuned[0].named_parameters())
    assert all(not after[name].equal(before[name]) for name in after if "head" not in name)
    for name, value in task.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)
    np.testing.assert_array_equal(outputs[0], outputs[1])
    assert not np.array_equal(outputs[0], outputs[2])
    there = np.isfinite(labels)
    assert outputs[0].shape == (12, len(made.rows))
    untuned = white_noise.extrapolate(task, made, labels, 1, 0)
    errors = [np.mean((x[:6][there] - labels[there]) ** 2) for x in (untuned, outputs[0])]
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize(
    ("kind", "law", "target"),
    [
        (NextTokenTask, "power_1_5", "projection"),
        (ForceTask, "newton", "random"),
        (StateTask, "newton", "projection"),
    ],
)
def test_lines_of_every_task_and_resume(tmp_path, monkeypatch, kind, law, target):
    one = subject(tmp_path, kind, law)
    settings = Settings(n_sequences=6, datasets=2, steps=2, white_noise=target)
    probe, store = get("inductive_bias"), Store(tmp_path, {"probe": "inductive_bias"})
    lines = probe.measure(one, settings, store)
    assert [(x["name"], x["arm"]) for x in lines] == [
        ("softmax", one.row["arm"]),
        ("softmax", "untrained"),
        ("linear oracle", "oracle"),
        ("MLP oracle", "oracle"),
    ]
    for line in lines:
        assert line["setting"]["interval"] == "over 2 datasets"
        for name in ("r_ib", "d_ib", "mae_linear", "mae_mlp", "r2"):
            value, low, high = line["metrics"][name]
            assert low <= value <= high
    for line in lines[2:]:
        assert line["metrics"]["r_ib"] == [1, 1, 1]  # functions of the state
    assert lines[2]["metrics"]["mae_linear"] == [0, 0, 0]

    def again(*_):
        raise AssertionError("computed twice")

    monkeypatch.setattr(inductive_bias, "extrapolate", again)
    monkeypatch.setattr(inductive_bias, "mlp_oracle", again)
    assert probe.measure(one, settings, store) == lines
    rows = [
        {**x, "row": {**one.row, "model": x["name"], "arm": x["arm"]}, "subject": one.row}
        for x in lines
    ]
    for path in probe.draw(rows, tmp_path).values():
        assert path.stat().st_size > 10_000


def test_checkpoints_of_one_world_share_datasets_and_an_untrained_twin(tmp_path, monkeypatch):
    asked = {"noise": 0, "answers": 0}

    def noise(made, settings, number):
        asked["noise"] += 1
        return {"labels": np.full((6, len(made.rows)), float(number))}

    def answer(task, made, labels, steps, seed):
        asked["answers"] += 1
        weight = next(task.gpt.parameters()).sum().item()
        return np.full((12, len(made.rows)), weight)

    monkeypatch.setattr(inductive_bias, "_noise", noise)
    monkeypatch.setattr(inductive_bias, "extrapolate", answer)

    def ask(one, seeds=(0,)):
        settings = Settings(n_sequences=6, datasets=3, seeds=seeds)
        store = Store(tmp_path, {"probe": "bias", "checkpoint": id(one), "seeds": seeds})
        made = histories(one.protocol, 0, 6)
        return get("inductive_bias")._answered(made, one, settings, 2, store)

    orbits, state = subject(tmp_path), subject(tmp_path, StateTask)
    next(state.task.gpt.parameters()).data += 1
    first = ask(orbits)
    assert asked == {"noise": 3, "answers": 6}
    second = ask(state)
    assert asked == {"noise": 3, "answers": 9}  # its own answers alone
    for one, two in zip(first, second, strict=True):
        assert np.array_equal(one["untrained"], two["untrained"])
        assert not np.array_equal(one["checkpoint"], two["checkpoint"])
    ask(subject(tmp_path, law="power_1_5"))  # another world
    assert asked == {"noise": 6, "answers": 15}
    ask(subject(tmp_path, attention="lssar", attention_args={"p": 3.0}))
    assert asked == {"noise": 6, "answers": 21}
    ask(subject(tmp_path, attention="lssar", attention_args={"p": 5.0}))  # of the same weights
    assert asked == {"noise": 6, "answers": 27}
    ask(orbits, (1,))
    assert asked == {"noise": 9, "answers": 33}


def test_a_world_without_states_is_refused(tmp_path):
    one = subject(tmp_path, protocol="nbody")
    assert "no two-body states" in get("inductive_bias").refusal(one, Settings())
    assert get("inductive_bias").refusal(subject(tmp_path), Settings()) is None


def test_a_model_that_saw_labels_of_the_asked_sequences_is_refused(tmp_path):
    one = subject(tmp_path, ForceTask, protocol_args={**ARGS, "label_leak": 2})
    assert "label_leak=2" in get("inductive_bias").refusal(one, Settings())


@pytest.mark.slow
def test_a_model_that_knows_the_state_is_between_the_oracle_and_its_untrained_twin(tmp_path):
    one = subject(tmp_path, StateTask, n_layer=2, head_dim=16)
    trainer = lightning.Trainer(
        max_steps=400,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        limit_val_batches=0,
    )
    trainer.fit(one.task, OrbitData(protocol_args=ARGS, population="force"))
    one.task.eval()
    settings, store = Settings(n_sequences=40, datasets=4), Store(tmp_path, {"probe": "bias"})
    lines = get("inductive_bias").measure(one, settings, store)
    state, untrained, oracle, _ = (line["metrics"] for line in lines)
    assert oracle["r_ib"][0] == 1
    assert state["r_ib"][1] > untrained["r_ib"][2]
    assert state["mae_linear"][2] < untrained["mae_linear"][1]
    assert state["r2"][1] > untrained["r2"][2]
    assert all(abs(found["d_ib"][0] - 1) < 0.05 for found in (state, untrained, oracle))
