"""The implied-law probe: what is asked, medians, sentences, refusals, a whole measurement."""

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from orbits import protocols
from orbits.implied.one_step import OneStep
from orbits.runs import folder
from orbits.runs.schedule import run
from orbits.runs.study import all_cells
from symreg.predictions import read
from tests.worldmodel.probes.evaluation import HERE, evaluate, find, result
from worldmodel import probes
from worldmodel.models.gpt_world import GPTPrediction
from worldmodel.models.next_point import BinHead
from worldmodel.models.orbit import ForceModel
from worldmodel.probes import command
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.implied import further, words
from worldmodel.probes.implied.asked import all_prompts, own_prompts, refusal
from worldmodel.probes.implied.figures import CAPTIONS
from worldmodel.probes.implied.names import WORLDS, in_words
from worldmodel.probes.motion.held_out import HeldOutSystems, expectations, medians
from worldmodel.probes.probe import STUDY
from worldmodel.probes.settings import Settings

PROBE = probes.get("implied_law")
SETTINGS = Settings(n_sequences=12, seeds=(3,), cells=40)
PROTOCOL = protocols.get("identifiable")


def test_prompts_have_the_time_steps_and_tokens_that_they_say():
    prompts = list(all_prompts(PROTOCOL, ["newton"], seed=0, n=40))
    assert len(prompts) == 3 + 6 + 6 + 2
    *prompts, closer, eccentric = prompts
    assert [closer.shift, eccentric.shift] == ["closer", "more_eccentric"]
    assert closer.test.world.semi_major_axis.max() <= 0.5
    assert not closer.is_own
    assert closer.setting == {"asked": "rollout", "prompt": "newton", "shift": "closer"}
    own = {x.law: x for x in prompts if x.is_own}
    assert set(own) == {"power_1_5", "newton", "power_2_5"}
    for x in prompts:
        true, other = own[x.law].test, own[x.token].test
        same = x.test.batch["dt"] == true.batch["dt"]
        assert (x.batch["tokens"][:, 0] == other.batch["tokens"][:, 0]).all()
        if x.steps == x.law:
            assert same.all()
            np.testing.assert_array_equal(x.batch["tokens"][:, 1:], true.batch["tokens"][:, 1:])
        else:
            assert 0 < same.mean() < 1
            assert (x.test.batch["dt"] == other.batch["dt"]).all()
    settings = [json.dumps(x.setting) for x in prompts]
    assert len(set(settings)) == len(settings)


class Spread:
    """A world model that holds the true next place likely, and one far away a little."""

    def __init__(self, test, share):
        self.layout, self.share = test.protocol.tokens, share
        self.tokens = torch.from_numpy(test.batch["tokens"].astype(np.int64))

    def observe(self, seen):
        return seen

    def predict_next(self, seen):
        bins = torch.roll(self.tokens, -1, dims=1).clamp(max=self.layout.n_bins - 1)
        likely = torch.nn.functional.one_hot(bins, self.layout.n_bins).double()
        far = torch.zeros_like(likely)
        far[..., -1] = 1
        logits = ((1 - self.share) * likely + self.share * far + 1e-12).log()
        return GPTPrediction(BinHead(8, self.layout), logits)


def test_a_median_stays_where_an_expectation_is_led_astray():
    world = PROTOCOL.systems(0, "test", np.arange(40))
    test = HeldOutSystems(PROTOCOL, world)
    model, true = Spread(test, 0.02), test.batch["coordinates"]
    points = medians(model, test)
    assert np.abs(points[:, 1:] - test.observed[:, 1:]).max() <= test.protocol.tokens.width / 2
    expected = 0.98 * test.observed + 0.02 * (4 - test.protocol.tokens.width / 2)
    steps = OneStep(PROTOCOL, world, 12)
    assert np.allclose(expectations(model, test)[:, 1:], expected[:, 1:], atol=1e-3)
    good, bad = (steps.measured(x, true) for x in (points, expected))
    assert good["exponent_within"].value == pytest.approx(-2, abs=0.1)
    assert good["missed"].value < 0.2 < bad["missed"].value


def rollout(variant, arm, prompt, value, seed=0, **setting):
    span = (value, value - 0.01, value + 0.02)
    metrics = {"exponent_within": span, "missed": (0.3, 0.2, 0.4)}
    metrics |= {"first_error": (0.1, 0.0, 0.2), "last_error": (0.5, 0.4, 0.6)}
    setting = {"asked": "rollout", "prompt": prompt, **setting}
    return result(variant, arm, metrics=metrics, setting=setting, seed=seed)


def test_the_first_sentence_says_by_which_law_orbits_go_on():
    worlds = {"power_1_5": -1.5, "newton": -2.0, "power_2_5": -2.5}
    results = []
    for law, value in worlds.items():
        results.append(rollout("softmax", "pretrained", law, -1.9 + value / 10 + 0.2))
        results.append(rollout("true orbit in bins", "oracle", law, value))
        results.append(rollout("nearest training orbit", "control", law, -2.0))
        other = {"time steps of": "newton"} if law != "newton" else {"time steps of": "power_1_5"}
        told = {"token of": next(iter(other.values()))}
        results += [
            rollout("softmax", "pretrained", law, -1.8 + value / 10, **x) for x in (other, told)
        ]
        results.append(rollout("true orbit in bins", "oracle", law, value + 0.01, **other))
    results.append(rollout("softmax", "pretrained", "newton", -2.1, asked="one step"))
    for variant, arm, value in (
        ("softmax", "pretrained", -1.4),
        ("true orbit in bins", "oracle", -1.9),
        ("nearest training orbit", "control", -2.0),
    ):
        results.append(rollout(variant, arm, "newton", value, shift="closer"))
    first, outside, second, moved, table, masses = words.answers(results)
    assert first == (
        "softmax (1 training in the world of r^-2) continues orbits of r^-1.5 by r^-1.85 [-1.86, "
        "-1.83], of r^-2 by r^-1.90 [-1.91, -1.88], of r^-2.5 by r^-1.95 [-1.96, -1.93]; truth in "
        "bins -1.50, -2.00, -2.50."
    )
    assert outside == (
        "softmax outside its training box: by r^-1.40 [-1.41, -1.38] (semi-major axis of 0.3 to "
        "0.5 AU, trained from 0.5; truth in bins -1.90, nearest training orbit -2.00)."
    )
    assert "follows 0.10 of the difference" in second
    assert "in the others 0.100 AU off one step after a prompt and 0.50 AU at the end" in second
    assert "misses 0.30 [0.20, 0.40] of the kick" in second
    assert "at most 0.10 (those of the truth in bins by 0.01)" in moved
    assert "does not tell a law from a table of orbits" in table
    assert "no evidence" in masses
    assert in_words("mond") == "mond"
    assert in_words("m1_over_r2") == "m1_over_r2", "not Newton's r^-2"
    results += [
        rollout("softmax", "pretrained", law, -1.6 + value / 10, seed=1)
        for law, value in worlds.items()
    ]
    first = words.answers(results)[0]
    assert "2 trainings in the world of r^-2" in first
    assert "of r^-1.5 by r^-1.80 (-1.85, -1.75), of" in first, "two stand one by one"


def test_further_sentences_say_what_steps_elsewhere_and_draws_show():
    assert further.answers([rollout("softmax", "pretrained", "newton", -1.9)]) == []
    results = []
    for seed in range(3):
        results.append(rollout("softmax", "pretrained", "newton", -1.9, seed))
        for given, value in (({}, -1.7 - seed / 100), ({"given": "true places"}, -1.8)):
            draws = {"draws": 4, **given}
            results.append(rollout("softmax", "pretrained", "newton", value, seed, **draws))
        for law, value in (("newton", -2.1), ("power_1_5", -2.3)):
            results.append(rollout("softmax", "pretrained", law, value, seed, asked="one step"))
    for who, value in (("true orbit in bins", -1.5), ("orbit fit by the training's law", -1.6)):
        results.append(rollout(who, "control", "power_1_5", value, asked="one step"))
    steps, drawn = further.answers(results)
    assert "an exponent along orbits of -2.30" in steps
    assert "orbit fit by the training's law -1.60 [-1.61, -1.58]" in steps
    assert "names no law" in steps
    assert "of r^-2 by r^-1.71 [-1.73, -1.69] (likeliest rows -1.90; true orbits" in drawn
    assert drawn.endswith("Less the likeliest in its own world: 0.19 [0.17, 0.21], flatter.")
    results[-1] = rollout(
        "orbit fit by the training's law", "control", "power_1_5", -2.05, asked="one step"
    )
    assert "may name a law" in further.answers(results)[0]


def test_draws_are_reproducible_and_average_exponents(untrained):
    checkpoint = Checkpoint.load(untrained(protocol_args={"n_points": 24, "n_bins": 64}))
    model, prompts = checkpoint.model, own_prompts(checkpoint.trained_on, "power_1_5", 0, 6)
    end = prompts.test.n_prompt
    for draw in (prompts.drawn, prompts.drawn_next):
        one, again, other = draw(model, 2, 0), draw(model, 2, 0), draw(model, 2, 1)
        np.testing.assert_array_equal(one, again)
        assert (one[0][:, end:] != one[1][:, end:]).any()
        assert (one[0][:, end:] != other[0][:, end:]).any()
        np.testing.assert_allclose(one[0][:, 1:end], prompts.test.observed[:, 1:end], atol=1e-6)
    alone = [prompts.measured(points) for points in one]
    both = prompts.measured_together(one)
    for name, value in both.items():
        assert value.value == pytest.approx(np.mean([x[name].value for x in alone]))


def test_draws_of_a_sure_model_are_what_it_is_sure_of(monkeypatch):
    prompts = own_prompts(PROTOCOL, "newton", 0, 20)
    model = Spread(prompts.test, 0.0)
    model.device = "cpu"
    (points,) = prompts.drawn_next(model, 1, 0)
    np.testing.assert_allclose(points, prompts.test.observed, atol=1e-6)


def test_only_what_is_asked_for_moves_an_address(untrained):
    def cell(**changes):
        settings = {"checkpoints": (str(untrained()),), "probes": ("implied_law",), **changes}
        (found,) = all_cells(STUDY, Settings(**settings))
        return found

    own, elsewhere = cell(), cell(law="power_1_5")
    assert set(own.arguments["settings"]) == {"n_sequences", "seeds", "data_seed", "cells"}
    assert cell(draws=0, least_signal=0).key == own.key
    assert cell(draws=2).arguments["settings"]["draws"] == 2
    assert (own.version, elsewhere.version) == (4, 5)


def test_what_cannot_be_asked_is_refused_with_the_fix(untrained):
    def refusal(*options, **changes):
        return PROBE.why_not(Checkpoint.load(untrained(*options, **changes)), SETTINGS)

    assert refusal(ForceModel) == "a ForceModel predicts no next row; take a NextTokenModel"
    assert "several planets" in refusal(protocol="fixed", protocol_args={"n_points": 88})
    assert "take the probe free_fall" in refusal(protocol="triples")
    assert "n_points=22" in refusal(protocol_args={"n_points": 22})
    assert refusal() is None
    with pytest.raises(ValueError, match="cells must be 0 or at least 25"):
        Settings(cells=5)
    with pytest.raises(ValueError, match="least_signal must be 0 or more, got -1"):
        Settings(cells=40, least_signal=-1)
    with pytest.raises(ValueError, match="give cells, too"):
        Settings(least_signal=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dts": (0.5,)}, "the shortest time step that a token tells, 0.5 years, aliases them"),
        ({"high": 1.5, "low": -1.5}, "AU, beyond the bins of protocol 'identifiable', which end"),
        ({"law": "inverse_cube"}, "'inverse_cube' does not bind trajectory"),
        ({"law": "power_a1_n2.95"}, "orbits of law 'power_a1_n2.95' turn in 0.12 years"),
        ({"law": "0.01*m1*m2/r**2"}, "bend by 0.17 bins a step, too little to tell by which law"),
    ],
)
def test_a_world_that_tokens_cannot_express_is_refused(changes, message):
    reason = refusal(dataclasses.replace(PROTOCOL, **changes))
    assert message in reason
    assert reason.endswith(
        ("take prompts of another law", "take another law", "take prompts of a stronger one")
    )
    assert "\n" not in reason


@pytest.mark.parametrize(
    ("options", "law", "message"),
    [
        ((), "inverse_cube", "law 'inverse_cube' does not bind"),
        ((), "newton_G_1000000", "the shortest time step that a token tells, 0.0078125 years"),
        ((ForceModel,), "newton", "a ForceModel predicts no next row; take a NextTokenModel"),
    ],
)
def test_what_cannot_be_asked_is_one_line_before_any_work(
    untrained, tmp_path, refusal, options, law, message
):
    out = tmp_path / "out"
    asked = [str(untrained(*options)), f"--law={law}", "--probes=implied_law", "--out", str(out)]
    assert message in refusal(command.main, asked)
    assert not out.exists()


@pytest.mark.full
def test_models_of_three_worlds_continue_the_same_prompts(untrained, tmp_path):
    args = {"n_points": 24, "n_bins": 64}
    paths = [
        untrained(protocol_args={**args, **({} if law == "newton" else {"law": law})})
        for law in WORLDS
    ]
    with pytest.raises(ValueError, match="probe them apart, or both in one: --law power_1_5"):
        list(STUDY.cells(Settings(checkpoints=tuple(map(str, paths)), probes=("implied_law",))))
    settings = dataclasses.replace(
        SETTINGS,
        checkpoints=tuple(map(str, paths)),
        probes=("implied_law",),
        law="newton",
        draws=1,
        least_signal=1e-3,
    )
    results = run(STUDY.cells(settings), tmp_path, HERE, None)
    assert all(x.ok for x in results)
    steps = [x for x in results if x.case.setting["asked"] == "one step"]
    assert {x.case.setting["prompt"] for x in steps if "predictions" in x.files} == {
        x.details["checkpoint"]["trained_on"] for x in steps if words.is_home(x) and x.files
    }
    for own, there in itertools.product(WORLDS, WORLDS):
        alike = {
            x.case.variant: x
            for x in steps
            if (x.details["checkpoint"]["trained_on"], x.case.setting["prompt"]) == (own, there)
        }
        # Newton's models are in their own world.
        assert bool(alike) == (own != "newton" or there == "newton")
        assert ("orbit fit by the training's law" in alike) == (bool(alike) and own != there)
        if alike:
            assert alike["true orbit"].value("missed") == pytest.approx(0, abs=1e-9)
        if alike and own != there:
            believer = alike["orbit fit by the training's law"].value("missed")
            assert believer > 2 * alike["orbit fit"].value("missed")
    elsewhere = [x for x in steps if "predictions newton" in x.files]
    assert {x.details["checkpoint"]["trained_on"] for x in elsewhere} == {*WORLDS} - {"newton"}
    for each in elsewhere:  # forces of Newton's world, by models of others
        assert len(read(folder.file(tmp_path, each, "predictions newton"), "newton")) == 40
    chosen = [x for x in steps if "predictions of chosen points" in x.files]
    assert all(words.is_home(x) and x.case.arm in ("pretrained", "untrained") for x in chosen)
    proof = folder.file(tmp_path, chosen[0], "predictions of chosen points")
    assert (
        json.loads(Path(f"{proof}.json").read_text())["manifest"]["config"]["least_signal"] == 1e-3
    )
    assert {x.details["checkpoint"]["trained_on"] for x in chosen} == {*WORLDS}
    drawn = [x for x in results if "draws" in x.case.setting]
    assert len(drawn) == 3 * 3 * 2
    pictures = {p.caption: p.images for p in PROBE.draw(results, tmp_path)}
    assert list(pictures) == list(CAPTIONS.values())
    for images in pictures.values():
        for image in images:
            with Image.open(image) as picture:
                assert picture.size[0] > 400
                films = image.suffix == ".gif"
                assert getattr(picture, "n_frames", 1) == (12 if films else 1)
                if films:  # the truth and three models, two by two
                    assert picture.size[0] == pytest.approx(picture.size[1] * 5.2 / 6.1, rel=0.02)
    assert [x.stem for x in pictures[CAPTIONS["implied_law_film"]]] == [
        f"implied_law_film_{law}" for law in WORLDS
    ]


@pytest.mark.full
def test_a_measurement_stands_beside_its_references(untrained, tmp_path):
    results = evaluate("implied_law", untrained(), SETTINGS, tmp_path)
    asked = {"prompt": "newton", "variant": "true orbit"}
    rolled = next(x for x in results if words.is_own(x) and x.case.variant == "true orbit")
    assert rolled.value("last_error") == 0
    for reading in ("exponent_family_free", "exponent_overall"):  # of the first prompts, r^-1.5
        assert rolled.value(reading) == pytest.approx(-1.5, abs=0.1)
    model = find(results, variant="softmax", arm="pretrained", asked="one step", prompt="newton")
    expected = {"exponent_expected", "exponent_expected_least_squares"}
    assert 0 < model.value("tail_error") < 20
    assert 0 < model.value("tail_error_expected") < 20
    assert {"exponent_least_squares", *expected} < set(model.metrics)
    steps = find(results, asked="one step", **asked)
    assert steps.value("missed") == pytest.approx(0, abs=1e-9)
    assert steps.value("planet_constant") == pytest.approx(39.478, abs=1e-2)
    names = {x.case.variant for x in results}
    assert {"orbit fit", "cubic extrapolation", "nearest training orbit"} <= names
    cubic, quadratic, straight = (
        find(results, asked="one step", prompt="newton", variant=name)
        for name in ("cubic extrapolation", "quadratic extrapolation", "straight on")
    )
    # The shorter the memory, the less it knows of a force; who goes straight on feels none.
    assert 0 > cubic.value("exponent_within") < quadratic.value("exponent_within")
    assert straight.value("missed") > 1
    assert "planet_constant" not in straight.metrics
    twins = [x for x in results if x.case.arm == "untrained"]
    assert len(twins) == 3 + 2 + 1
    mine = [x for x in results if x.case.arm == "pretrained"]
    assert len(mine) == 3 + 12 + 2 + 1
    files = {
        (x.case.variant, x.case.arm): folder.file(tmp_path, x, "predictions")
        for x in results
        if "predictions" in x.files
    }
    own = read(files["softmax", "pretrained"])
    assert (len(own), own.row["arm"]) == (40, "implied")
    cubic = read(files["cubic extrapolation", "control"])
    assert (cubic.row["model"], cubic.row["arm"]) == ("cubic extrapolation", "implied, control")
    assert {"true orbit", "true orbit in bins", "orbit fit"} <= {name for name, _ in files}
    paths = {
        (x.case.variant, x.case.arm): read(folder.file(tmp_path, x, "predictions of paths"))
        for x in results
        if "predictions of paths" in x.files
    }
    assert paths["softmax", "pretrained"].row["arm"] == "paths"
    assert len(paths["true orbit", "oracle"]) == 40
    assert "nearest training orbit" in {name for name, _ in paths}
    assert "cubic extrapolation" not in {name for name, _ in paths}, "it shows no attraction"
    assert all(
        x.case.setting["prompt"] == "newton" for x in results if "predictions of paths" in x.files
    )


@pytest.mark.full
def test_a_world_of_other_masses_is_asked_as_any(untrained, tmp_path):
    world = {"protocol_args": {"n_points": 24, "n_bins": 64, "law": "m1_over_r2"}}
    results = evaluate("implied_law", untrained(**world), SETTINGS, tmp_path)
    steps = find(results, asked="one step", prompt="m1_over_r2", variant="true orbit")
    found = [steps.value(f"{body}_{x}") for body in ("planet", "star") for x in ("m1", "m2", "r")]
    assert found == pytest.approx([0, 0, -2, 1, -1, -2], abs=0.02)
    assert steps.value("action_reaction") == pytest.approx(1, abs=0.02)
    said = words.answers(results)
    assert "of m1_over_r2 by r^" in said[0]
    assert any("continuations do not tell m1_over_r2 from a law of other masses" in x for x in said)
    drawn = {image.stem for x in PROBE.draw(results, tmp_path) for image in x.images}
    assert {*CAPTIONS} - {"implied_law_film"} < drawn
    assert "implied_law_film_m1_over_r2" in drawn
    file = next(
        folder.file(tmp_path, x, "predictions")
        for x in results
        if "predictions" in x.files and x.case.variant == "true orbit"
    )
    assert len(read(file, "m1_over_r2")) == 40
