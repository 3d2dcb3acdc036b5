"""The cells of few_labels: the flagship's backbones, and heads that differ in what is said."""

from pathlib import Path

import pytest

from benchmarks.few_labels.few_labels import STUDY
from benchmarks.newton import newton
from orbits.runs import reuse, study
from worldmodel.controls.baselines import BASELINES

KEPT = Path(__file__).parents[3] / "benchmarks/results/newton-exam"


def cells(preset="small", **changes):
    return study.all_cells(STUDY, STUDY.resolve(STUDY.settings(preset, **changes)))


@pytest.fixture(scope="module")
def small():
    return cells(seeds=[0, 7], label_sets=[0, 7], steps=[400, 1700])


def tuned(grid, **fields):
    """Return the jobs of the cells whose case has these fields."""
    return [
        cell.arguments["job"]
        for cell in grid
        if cell.function.__name__ == "tune"
        and all(cell.case.get(name) == value for name, value in fields.items())
    ]


def test_backbones_are_those_that_a_run_of_the_flagship_has(small):
    settings = newton.STUDY.settings(
        "small", attention=["lssar", "softmax"], exponents=[15.0], seeds=[0, 1, 7]
    )
    flagship = {
        cell.key
        for cell in study.all_cells(newton.STUDY, settings)
        if cell.case.kind == "world model" and cell.case.seed != 1
    }
    assert {cell.key for cell in small if cell.case.kind == "world model"} == flagship


def test_on_the_diagonal_the_recipe_is_the_flagships(small):
    settings = newton.STUDY.settings(
        "small", attention=["lssar"], exponents=[15.0], seeds=[7], labels=[100]
    )
    (head,) = (
        cell.arguments["job"]
        for cell in study.all_cells(newton.STUDY, settings)
        if cell.case.kind == "forces" and cell.case.arm == "pretrained"
    )
    own = {"variant": "lssar p=15", "arm": "with", "seed": 7, "label_set": 7}
    (job,) = tuned(small, **own, lr=head["lr"], steps=head["steps"])
    watched = {"val_steps": 25, "keep_best": True}
    assert job == {**head, **watched, "data": {**head["data"], "n_val": 256}}


def test_every_backbone_meets_every_label_set_in_every_arm(small):
    assert len(tuned(small, variant="lssar p=15")) == 2 * 2 * 2 * 2 * 3
    assert len(tuned(small, variant="softmax")) == 2 * 2 * 2 * 2
    (one, other) = tuned(small, variant="softmax", label_set=7, lr=0.003, steps=400)
    assert one == other, "backbones differ in what the cell needs, not in its labels"
    assert {job["data"]["train_seed"] for job in tuned(small, seed=0)} == {0, 7}


def test_arms_differ_in_the_schedule_of_the_re_weighting_alone(small):
    own = {"variant": "lssar p=15", "seed": 0, "label_set": 0, "lr": 0.003, "steps": 400}
    kept, without, annealed = (
        tuned(small, **own, arm=arm)[0] for arm in ("with", "without", "annealed")
    )
    assert without == {**kept, "sharpen_after": 400}
    assert annealed == {**kept, "sharpen_ramp": 200}


def test_baselines_learn_from_the_same_labels(small):
    fitted = [cell for cell in small if cell.case.arm == "control" and cell.case.kind == "forces"]
    assert len(fitted) == 2 * 2
    for cell in fitted:
        labelled = cell.arguments["arguments"]["labelled"]
        (job, *_) = tuned(small, label_set=cell.case.get("label_set"))
        assert labelled == {name: x for name, x in job["data"].items() if name != "n_val"}


def test_all_stands_for_every_baseline():
    settings = STUDY.settings("small", baselines=("all",))
    assert STUDY.resolve(settings).baselines == tuple(BASELINES)
    with pytest.raises(ValueError, match="unknown baseline 'guess'"):
        STUDY.resolve(STUDY.settings("small", baselines=("all", "guess")))
    twice = STUDY.settings("small", baselines=("flat MLP", "flat MLP"))
    assert STUDY.resolve(twice).baselines == ("flat MLP",)


@pytest.mark.full
@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--reweighting=flat", "must be among with, without, annealed, got 'flat'"),
        ("--label-sets=-1", "label_sets must be at least 0, got -1"),
        ("--steps=410", "steps must be multiples of val_steps 25"),
        ("--anneal=0", "anneal must be above 0 and at most 1, got 0"),
        ("--lrs=2", "lrs must be between 0 and 1, got 2"),
        ("--labels=2", "a label budget is a number >= 3"),
        ("--baselines=guess", "unknown baseline 'guess'"),
        ("--attention=softmax --anneal=0.2", "--anneal needs a re-weighted variant: "),
        ("--recipe=gpu", "accelerator cuda needs 1 CUDA device"),
    ],
)
@pytest.mark.usefixtures("without_a_gpu")
def test_bad_input_is_one_line_and_changes_nothing(refused_run, flag, message):
    assert message in refused_run("few_labels", "--executor=here", *flag.split(" "))


def test_kept_world_models_serve_as_backbones(tmp_path):
    grid = cells(attention=["lssar"], seeds=[0, 4, 5])
    plan = reuse.plan(grid, [KEPT], tmp_path / "out", STUDY.restore)
    assert len(plan.taken) == 2, "seeds 0 and 4 were kept, 5 was not"
