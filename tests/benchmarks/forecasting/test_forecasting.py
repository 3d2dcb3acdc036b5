"""Forecasts: the networks against plain twins, floors and errors, and the study from end to end."""

import json
import math
import types

import numpy as np
import pandas
import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.forecasting import networks, neuralforecast
from benchmarks.forecasting.errors import errors_of
from benchmarks.forecasting.forecasting import ALIKE, STUDY, THEIRS
from benchmarks.forecasting.learner import ForecastData, ForecastModel
from benchmarks.rates import best
from orbits.runs import folder
from orbits.runs.result import Case, Metric, Result
from orbits.runs.table import by_variant

KINDS = ("dlinear", "patchtst", "itransformer", "mixer")
EEG = {"name": "eeg", "lookback": 48, "horizon": 12, "n_test": 100}
SIZES = {"n_layer": 1, "n_head": 2, "head_dim": 4, "dropout": 0.0}
DATA = {"name": "radial_velocity", "lookback": 48, "horizon": 12, "gaps": "carry"}


def model(kind, **args):
    torch.manual_seed(0)
    return ForecastModel(lookback=48, horizon=12, kind=kind, n_layer=1, head_dim=8, **args).eval()


@pytest.mark.parametrize("kind", KINDS)
def test_a_forecast_has_the_horizon_and_its_channels(kind):
    past = torch.randn(3, 48, 5)
    with torch.no_grad():
        ahead = model(kind)({"past": past})
        turned = model(kind)({"past": past[:, :, [4, 3, 2, 1, 0]]})
        other = past.clone()
        other[:, :, 0] += torch.randn(48)
        changed = model(kind)({"past": other})
    assert ahead.shape == (3, 12, 5)
    torch.testing.assert_close(turned, ahead[:, :, [4, 3, 2, 1, 0]])
    alone = torch.allclose(changed[:, :, 1:], ahead[:, :, 1:], atol=1e-6)
    assert alone == (kind != "itransformer")  # whose tokens are the channels


@pytest.mark.parametrize("kind", ["patchtst", "itransformer", "mixer"])
def test_a_forecast_follows_the_level_and_scale_of_its_window(kind):
    past = torch.randn(2, 48, 3)
    with torch.no_grad():
        one, other = (model(kind)({"past": x}) for x in (past, 10 + 100 * past))
    torch.testing.assert_close(other, 10 + 100 * one, rtol=1e-3, atol=1e-2)


def test_an_encoder_sees_the_pieces_after_it():
    past = torch.randn(2, 48, 1)
    other = past.clone()
    other[:, -8:] += torch.randn(2, 8, 1)  # the last piece
    for causal in (True, False):
        network = model("mixer", causal=causal).network
        seen = [network.gpt(network.embed(networks.patches(x, 8))) for x in (past, other)]
        assert torch.equal(seen[0][:, :-1], seen[1][:, :-1]) == causal
        assert network(past).shape == (2, 12, 1)


def test_encoders_are_rows_of_their_own_and_leave_the_others_as_they_were():
    settings = STUDY.settings("tiny", attention=("softmax",))
    more = STUDY.settings("tiny", attention=("softmax",), encoders=("softmax", "zeros"))
    before, after = (
        {cell.case.variant: cell for cell in STUDY.cells(given)} for given in (settings, more)
    )
    assert set(after) - set(before) == {"softmax, encoder", "zeros, encoder"}
    assert all(after[name].key == cell.key for name, cell in before.items())
    assert "causal" not in before["softmax"].arguments["job"]["model"]


def test_dlinear_is_two_linear_maps_of_a_moving_average():
    linear = networks.DLinear(40, 3)
    past = torch.randn(1, 40, 1)
    row = past[0, :, 0].tolist()
    padded = [row[0]] * 12 + row + [row[-1]] * 12
    trend = torch.tensor([sum(padded[i : i + 25]) / 25 for i in range(40)])
    wanted = linear.trend(trend) + linear.rest(past[0, :, 0] - trend)
    torch.testing.assert_close(linear(past)[0, :, 0], wanted)


def test_a_block_of_patchtst_is_torchs_attention_with_scores_that_add_up():
    torch.manual_seed(0)
    block, x, before = (
        networks._PatchBlock(8, 2, 0.0),
        torch.randn(3, 5, 8),
        torch.randn(3, 2, 5, 5),
    )
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    ours = [*block.project.parameters(), *block.merge.parameters()]
    with torch.no_grad():
        for parameter, value in zip(theirs.parameters(), ours, strict=True):
            parameter.copy_(value)
        q, k, _ = block.project(x).unflatten(-1, (3, 2, 4)).unbind(2)
        mixed, _ = theirs(x, x, x, attn_mask=before.flatten(0, 1))
        block.eval()
        for norm in block.norms:
            norm.weight.div_((1 / (1 + norm.eps)) ** 0.5)  # an untrained norm is the identity
        made, scores = block(x, before)
    wanted = x + mixed
    torch.testing.assert_close(made, wanted + block.mlp(wanted))
    torch.testing.assert_close(scores, torch.einsum("nihd,njhd->nhij", q, k) / 2 + before)


@pytest.mark.parametrize(("lookback", "length"), [(48, 16), (50, 16), (10, 8), (3, 8)])
def test_patches_end_with_the_last_step(lookback, length):
    past = torch.arange(2 * lookback, dtype=torch.float32).reshape(1, lookback, 2)
    made = networks.patches(past, length)
    for channel in range(2):
        row = past[0, :, channel].tolist()
        starts = range(lookback % length - length if lookback % length else 0, lookback, length)
        assert made[channel].tolist() == [
            [row[max(0, i)] for i in range(start, start + length)] for start in starts
        ]


def test_a_forecast_that_is_no_number_is_not_left_out():
    future = np.array([[1.0, np.nan]])
    assert errors_of(np.array([[2.0, np.nan]]), future)["mse"].value == 1.0
    assert math.isnan(errors_of(np.array([[np.nan, 2.0]]), future)["mse"].value)


def test_the_loss_leaves_missing_values_out():
    learned = model("dlinear")
    batch = {"past": torch.randn(2, 48, 1), "future": torch.randn(2, 12, 1)}
    batch["future"][0, 3] = float("nan")
    error = (learned(batch) - batch["future"]).square()
    torch.testing.assert_close(learned._loss(batch), error[error.isfinite()].mean())
    nothing = {**batch, "future": torch.full((2, 12, 1), float("nan"))}
    assert learned._loss(nothing).item() == 0


def test_rates_are_chosen_by_validation():
    def result(lr, seed, val, mse):
        setting = {"series": "etth1", "horizon": 96, "lr": lr}
        metrics = {"val_mse": Metric(val), "mse": Metric(mse), "mae": Metric(mse)}
        return Result(Case("forecasting", "measurement", "zeros", seed=seed, setting=setting),
                      metrics=metrics)  # fmt: skip

    made = [result(0.1, seed, 1.0, 0.5) for seed in (0, 1)]
    made += [result(0.2, seed, 0.9, 0.7) for seed in (0, 1)]
    assert {x.case.get("lr") for x in best(made)} == {0.2}
    assert STUDY.ours(made, "zeros_table_4") == {}  # one horizon of four


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (("a/my.own.csv", "b/my_own.csv"), "a/my.own.csv and .*b/my_own.csv are both called"),
        (("a/own.csv", "b/own.csv"), "a/own.csv and .*b/own.csv are both called own.csv"),
        (("a/weather",), "is called as the known series weather; rename the file"),
    ],
)
def test_series_of_one_name_are_refused(tmp_path, files, words):
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("date,x\n2020-01-01,1\n")
    given = tuple(str(tmp_path / name) for name in files)
    with pytest.raises(ValueError, match=words):
        STUDY.cells(STUDY.settings("tiny", series=given))


@pytest.mark.full
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--models", "arima"], "unknown model 'arima'; choose from dlinear"),
        (["--gaps", "zero"], "unknown gaps 'zero'; choose from own, refuse, carry"),
        (["--gaps", "refuse"], "radial_velocity, column signal"),
        (["--models", "", "--attention", ""], "nothing to train"),
        (["--encoders", "gla"], "gla cannot be an encoder: gla has no causal"),
        (["--encoders", "zero"], "unknown attention 'zero'"),
        (["--horizons", "900"], "holds no window of 48 + 900 steps"),
    ],
)
def test_bad_settings_are_one_line(refused_run, flags, words):
    assert words in refused_run("forecasting", "--preset", "tiny", *flags)


@pytest.mark.full
def test_a_run_trains_and_skips_what_is_not_there(tmp_path, capsys):
    out = tmp_path / "out"
    names = "radial_velocity,etth1"
    more = ["--models", "dlinear,patchtst,itransformer", "--attention", "softmax,gla"]
    more += ["--encoders", "zeros", "--data", str(tmp_path), "--workers", "1"]
    main(["run", "forecasting", "--preset", "tiny", "--series", names, "--out", str(out), *more])
    results, _ = folder.load(out)
    trained = {x.case.variant for x in results if x.ok and x.case.seed is not None}
    assert trained == {"dlinear", "patchtst", "itransformer", "softmax", "gla", "zeros, encoder"}
    (skipped,) = (x for x in results if not x.ok)
    assert skipped.status == "skipped"
    assert "etth1 is not here: no ETTh1.csv in --data" in skipped.error
    capsys.readouterr()
    main(["report", str(out), "--full"])
    said = capsys.readouterr().out
    assert "radial_velocity, 12 steps ahead" in said
    assert "skipped: " in said
    json.dumps([x.to_json() for x in results])


def test_a_package_that_is_not_installed_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr(neuralforecast.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install -e"):
        STUDY.check(STUDY.settings("small", neuralforecast=True))


def test_a_series_with_gaps_is_refused_beside_the_library():
    settings = STUDY.settings("tiny", neuralforecast=True)
    with pytest.raises(ValueError, match="no series with gaps, which radial_velocity has"):
        STUDY.cells(STUDY.resolve(settings))


class OffByOne:
    """Stands for neuralforecast: forecasts one more than what comes, windows in any order."""

    def __init__(self, models, freq):
        self.network = models[0]

    def cross_validation(self, frame, val_size, test_size, n_windows, step_size):
        horizon, lookback = self.network["h"], self.network["input_size"]
        last = frame["ds"].max()
        rows = []
        for _, part in frame.groupby("unique_id"):
            for cutoff in range(last - test_size, last - horizon + 1):
                ahead = part[(part["ds"] > cutoff) & (part["ds"] <= cutoff + horizon)]
                assert len(ahead) == horizon
                rows.append(ahead.assign(cutoff=cutoff, DLinear=ahead["y"] + 1))
        assert lookback < last - test_size
        return pandas.concat(rows).sample(frac=1.0, random_state=0)


@pytest.mark.parametrize("n_test", [7, 10**6])
def test_the_library_is_asked_the_windows_of_the_study(n_test, monkeypatch):
    network = types.SimpleNamespace(DLinear=lambda **given: given)
    stood_in = {
        "neuralforecast": types.SimpleNamespace(NeuralForecast=OffByOne),
        "neuralforecast.losses.pytorch": types.SimpleNamespace(MSE=lambda: None),
        "neuralforecast.models": network,
    }
    monkeypatch.setattr(neuralforecast.importlib.util, "find_spec", lambda name: True)
    monkeypatch.setattr(neuralforecast.importlib, "import_module", stood_in.get)
    found = neuralforecast.of_theirs("dlinear", 1, 0, {**EEG, "n_test": n_test}, SIZES).metrics
    windows = ForecastData(**EEG).sequences("test", n_test)
    assert found["mse"].value == pytest.approx(1)
    assert found["mse"].n == len(windows)


@pytest.mark.parametrize("kind", ["dlinear", "patchtst", "itransformer"])
def test_the_recipe_of_the_library_trains_our_networks(kind):
    untrained, trained = (
        neuralforecast.of_ours(kind, steps, 0, EEG, SIZES).metrics["mse"].value for steps in (0, 60)
    )
    assert trained < 0.95 * untrained


def test_rows_of_the_library_are_beside_ours_and_in_no_other_comparison():
    rows = {"dlinear": 1.1, "softmax": 1.2, "gla": 1.3}
    rows |= {"dlinear, neuralforecast": 1.0, "dlinear, trained alike": 1.02}
    setting = {"series": "eeg", "horizon": 12, "lr": 0.001}
    results = [
        Result(
            Case("forecasting", "measurement", row, seed=seed, setting=setting),
            metrics={"mse": Metric(value + 0.01 * (seed - 1))},
        )
        for row, value in rows.items()
        for seed in range(3)
    ]
    said = STUDY.sentences(results)
    assert said[0] == (
        "eeg, 12 steps ahead, mean squared error, means in units of neuralforecast's: "
        "dlinear 1.020 trained alike; dlinear 1.100 by our recipe."
    )
    assert not any("alike" in sentence for sentence in said[1:])
    alone = [x for x in results if x.case.variant == "dlinear, neuralforecast"]
    assert STUDY.sentences(alone) == []
    without = [x for x in results if x.case.variant != "dlinear"]
    assert STUDY.sentences(without)[0].endswith(": dlinear 1.020 trained alike.")
    first, own, *_ = STUDY.tables(results)
    assert first.title == "Beside neuralforecast"
    assert len(first.rows) == 2
    assert len(own.rows) == 3


@pytest.mark.slow
def test_our_networks_have_the_errors_of_neuralforecasts(tmp_path):
    reason = "needs neuralforecast, which is not a dependency: pip install neuralforecast"
    pytest.importorskip("neuralforecast", reason=reason)
    main(
        ["run", "forecasting", "--series", "eeg", "--attention", "", "--neuralforecast", "true",
         "--lookback", "48", "--horizons", "12", "--steps", "300", "--n-test", "100000",
         "--workers", "1", "--out", str(tmp_path / "o")]
    )  # fmt: skip
    results, _ = folder.load(tmp_path / "o")
    errors = by_variant(best(results), "mse")
    for kind in ("dlinear", "patchtst", "itransformer"):
        own, alike, theirs = (
            np.mean(list(errors[f"{kind}{end}"].values())) for end in ("", ALIKE, THEIRS)
        )
        assert alike == pytest.approx(theirs, rel=0.05), kind
        assert own <= 1.05 * theirs, kind
