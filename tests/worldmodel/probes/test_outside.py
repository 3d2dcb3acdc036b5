"""World models from outside in the probes that once took checkpoints alone."""

from pathlib import Path

import numpy as np
import pytest

from orbits import protocols
from tests.worldmodel.probes.conftest import SMALL
from tests.worldmodel.probes.evaluation import evaluate, find, interval
from tests.worldmodel.trainings import save
from worldmodel import outside, probes
from worldmodel.models.exported import class_of, read_config
from worldmodel.models.load import CLASSES, export_model, load_model
from worldmodel.probes.motion.held_out import HeldOutSystems
from worldmodel.probes.probe import STUDY
from worldmodel.probes.settings import Settings
from worldmodel.probes.takes import ANSWERS
from worldmodel.world_model import Forces, Prediction, predicted, seen

ROOT = Path(__file__).parents[3]
MODEL = """
import numpy as np


class Still:
    name = "still"

    def __init__(self, sign=1.0):
        self.sign = sign

    def observe(self, seen):
        return seen.places

    def predict_next(self, places):
        return np.concatenate([places[:, :1], places[:, :-1]], axis=1)

    def hidden(self, places):
        return {"first": 0 * places, "last": self.sign * places}

    def untrained(self, seed):
        return Still(-1.0)
"""


@pytest.fixture
def still(tmp_path):
    path = tmp_path / "still.py"
    path.write_text(MODEL, "utf-8")
    return f"{path}:Still"


class LooksAheadWhereItIsScored:
    """Knows where the planet ends, and says so in the last quarter alone."""

    def observe(self, seen):
        return seen.places

    def predict_next(self, places):
        told = np.concatenate([places[:, :1], places[:, :-1]], axis=1)
        told[:, 3 * told.shape[1] // 4 :] += places[:, -1:]
        return told


def test_a_model_that_looks_ahead_late_is_no_world_model():
    model = outside.Outside(LooksAheadWhereItIsScored())
    assert "changes by" in outside.fault(model)
    model.model.predict_next = lambda places: 0 * places
    assert outside.fault(model) is None


class LooksAheadFromOneBody:
    """Answers with the next row of its sequences, in every second row alone."""

    def __init__(self, first, answer):
        self.first, self.answer = first, answer

    def observe(self, seen):
        return seen.places

    def predict_next(self, places):
        told = 0 * places
        told[:, self.first : -1 : 2] = places[:, self.first + 1 :: 2]
        return Apart(0 * places, self.answer, told)

    def force(self, places):
        told = self.predict_next(places).told
        size = told[..., 0] if self.answer == "magnitude" else 0 * told[..., 0]
        return Forces(size, told if self.answer == "vector" else 0 * told)


class Apart(Prediction):
    """Tells the places that were looked up in one of its answers, zeros in all others."""

    def __init__(self, places, answer, told):
        super().__init__(places)
        self.told = told
        if answer in ("expected", "median", "likeliest"):
            setattr(self, answer, lambda: told)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("answer", ["expected", "median", "likeliest", "vector", "magnitude"])
def test_no_answer_may_look_ahead_from_either_body(answer, first):
    model = outside.Outside(LooksAheadFromOneBody(first, answer))
    assert "changes by" in outside.fault(model)
    model.model.answer = "none"
    assert outside.fault(model) is None


class LooksAheadSomewhere(LooksAheadFromOneBody):
    """Answers with the next row in one row alone."""

    def predict_next(self, places):
        told = 0 * places
        told[:, self.first] = places[:, self.first + 1]
        return Apart(0 * places, self.answer, told)


@pytest.mark.parametrize("row", [0, 7, 20, 33, 47])
def test_no_row_may_look_ahead(row):
    assert "changes by" in outside.fault(outside.Outside(LooksAheadSomewhere(row, "median")))


class Hides(LooksAheadFromOneBody):
    """Looks ahead in every row, beside what would hide it."""

    def __init__(self, how):
        super().__init__(0, "expected")
        self.how = how

    def predict_next(self, places):
        told = np.concatenate([places[:, 1:], places[:, :1]], axis=1)
        told[:, 0] = {"silence": np.nan, "a large row": 1e4}.get(self.how, 0.0)
        return Apart(0 * places, "expected", told)

    def hidden(self, places):
        states = np.concatenate([places, np.full((*places.shape[:2], 1), 5e3)], axis=2)
        states[:, :-2, :2] = places[:, 2:]
        return {"last": states if self.how == "a large channel" else 0 * states}

    force = None


@pytest.mark.parametrize("how", ["silence", "a large row", "a large channel"])
def test_nothing_large_or_silent_hides_a_look_ahead(how):
    model = Hides(how)
    if how == "a large channel":
        model.predict_next = lambda places: 0 * places
    assert "changes by" in outside.fault(outside.Outside(model))


class Overwrites:
    """Sees exact places, and makes zeros of them where it looks."""

    exact = True

    def observe(self, seen):
        seen.places[:] = 0
        seen.tokens[:] = seen.tokens[:, :1]
        return seen.places

    def predict_next(self, places):
        return places


def test_what_a_model_does_to_its_view_changes_no_truth():
    world = protocols.get("identifiable", {"n_points": 24})
    test = HeldOutSystems(world, world.systems(0, "test", np.arange(4)))
    before = {name: value.copy() for name, value in test.batch.items()}
    view = seen(test.batch, world.tokens, exact=True)
    predicted(Overwrites(), view)
    for name, value in before.items():
        assert np.array_equal(test.batch[name], value, equal_nan=name == "force")
    assert view.places.any()


class Told(Prediction):
    """A prediction whose nats of a row depend on others."""

    def __init__(self, places, reach):
        super().__init__(places)
        self.reach = reach

    def nats(self, seen):
        own = seen.places[:, 1:] ** 2
        return np.concatenate([own[:, self.reach :], own[:, : self.reach]], axis=1)


@pytest.mark.parametrize(("reach", "fine"), [(0, True), (1, False)])
def test_nats_are_of_the_next_row_alone(reach, fine):
    model = outside.Outside(LooksAheadFromOneBody(0, "none"))
    model.model.predict_next = lambda places: Told(0 * places, reach)
    model.model.force = None
    assert (outside.fault(model) is None) == fine


@pytest.mark.parametrize("name", probes.names())
def test_what_a_probe_takes_is_known_from_its_file(name):
    one, told = probes.get(name), probes.takes(name)
    assert (one.asks, one.of, one.inside) == tuple(told)
    assert set(one.of) <= set(ANSWERS)
    assert one.asks or one.inside.startswith("it ")


def test_the_readme_says_which_probes_take_a_model_from_outside():
    page = (ROOT / "worldmodel" / "README.md").read_text("utf-8")
    rows = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    told = {row[1].strip(" `"): row[3].strip() for row in rows}
    assert set(told) == set(probes.names())
    for name, needs in told.items():
        asks = probes.takes(name).asks
        assert needs == (" or ".join(f"`{each}`" for each in asks) or "no"), name


@pytest.mark.full
def test_a_plan_says_that_the_speed_of_a_model_from_outside_is_not_known(still, tmp_path):
    told = "A model from outside may take longer"
    assert told in STUDY.plan((), Settings(checkpoints=(still,)))
    ours = tmp_path / "ours.ckpt"  # A plan asks whether it is there, and reads none of it.
    ours.touch()
    assert told not in STUDY.plan((), Settings(checkpoints=(str(ours),)))


@pytest.mark.full
def test_a_model_from_outside_is_prompted_with_disturbed_worlds(still, tmp_path):
    settings = Settings(n_sequences=3, seeds=(0,))
    results = evaluate("disturbed", still, settings, tmp_path / "out")
    mine = [x for x in results if x.case.variant == "still"]
    assert {x.case.arm for x in mine} == {"outside", "untrained"}
    assert "drag_rate" in mine[0].metrics


@pytest.mark.full
def test_a_model_from_outside_is_asked_by_which_law_it_continues(still, tmp_path):
    settings = Settings(n_sequences=12, seeds=(3,), cells=40)
    results = evaluate("implied_law", still, settings, tmp_path / "out")
    own = [x for x in results if (x.case.variant, x.case.arm) == ("still", "outside")]
    rolled = [x for x in own if x.case.get("asked") == "rollout" and x.case.get("shift") is None]
    assert {x.case.get("prompt") for x in rolled} >= {"power_1_5", "newton", "power_2_5"}
    for x in rolled:  # it stands still
        assert x.value("last_error") > 0.1
        assert not -3 < x.value("exponent_within") < -1
    step = find(own, asked="one step", prompt="newton")
    assert step.value("missed") > 1


@pytest.mark.full
def test_functions_are_read_from_the_last_hidden_states_of_a_model_from_outside(still, tmp_path):
    settings = Settings(n_sequences=12, datasets=2, seeds=(0,))
    results = evaluate("inductive_bias", still, settings, tmp_path / "out")
    pooled = [x for x in results if "r_ib" in x.metrics]
    own = find(pooled, variant="still", arm="outside")
    twin = find(pooled, variant="still", arm="untrained")
    # A ridge regression does not see the sign of what it reads.
    assert interval(own, "r2") == pytest.approx(interval(twin, "r2"))
    assert own.metrics["r2"].value > 0.05, "the places are a part of the state"
    assert "steps" not in own.case.setting
    for picture in probes.get("inductive_bias").draw(results, tmp_path):
        assert picture.caption.endswith("learns the functions.")


def test_the_class_of_an_exported_model_is_told_by_its_folder(tmp_path):
    for kind in CLASSES[:3]:
        name = kind.__name__
        path = save(kind(**SMALL), tmp_path / f"{name}.ckpt")
        folder = export_model(path, tmp_path / name)
        assert class_of(folder, read_config(folder)["settings"]) == name
        assert type(load_model(folder)) is kind
