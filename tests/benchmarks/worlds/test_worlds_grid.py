"""The cells of worlds: what is trained on what, what is asked, and what is refused."""

import pytest

from benchmarks.worlds import names
from benchmarks.worlds.worlds import STUDY
from orbits.mixture import is_held_out
from orbits.runs import study


def cells(preset="small", **changes):
    return study.all_cells(STUDY, STUDY.resolve(STUDY.settings(preset, **changes)))


@pytest.fixture(scope="module")
def small():
    return cells()


def trained(grid, arm):
    return [x.arguments["job"] for x in grid if x.case.kind == "world model" and x.case.arm == arm]


def test_models_differ_in_their_worlds_and_in_what_they_are_told(small):
    mixture = trained(small, names.MIXTURE)
    assert len(mixture) == 3 * 3
    same = [job for job in mixture if job["model"]["attention"] == "softmax"]
    assert trained(small, names.TOLD) == [
        {**job, "data": {**job["data"], "told": True}} for job in same
    ]
    assert trained(small, names.ALONE) == [
        {**job, "data": {**job["data"], "exponents": [-2.0]}} for job in same
    ]
    assert {job["data"]["train_seed"] for job in mixture} == {0, 1, 2}
    for job in mixture:
        assert job["data"]["protocol"] == "neutral_step"
        laws = job["data"]["exponents"]
        assert len(laws) == 64
        assert not any(is_held_out(x, (-2.2, -1.8, -1.2, -0.8)) for x in laws)


def test_controls_are_trained_with_the_first_seeds():
    assert [job["seed"] for job in trained(cells(control_trainings=2), names.TOLD)] == [0, 1]
    assert [job["seed"] for job in trained(cells("families"), names.TOLD)] == [0]


def test_every_model_and_control_is_asked_the_same(small):
    asked = [x for x in small if x.case.kind == "worlds"]
    assert len(asked) == 9 + 6 + 1 + 5 + 1
    truths = {x.needs["truths"].key for x in asked}
    assert len(truths) == 1
    for cell in asked:
        assert cell.arguments["tested"] == [
            {"exponent": x, "held_out": x in (-2.0, -1.0)} for x in (-2.5, -2.0, -1.5, -1.0, -0.5)
        ]
        assert cell.arguments["prompts"] == [4, 8, 12]
    controls = {x.case.variant: x for x in asked if x.case.arm == "control"}
    assert set(controls) == set(names.CONTROLS)
    remembered = controls[names.NEAREST_MEAN].arguments["n_table"]
    assert remembered == 2200 * 64, "as many orbits as a training has"


def test_other_families_are_asked_of_models_that_know_them_and_of_those_that_do_not(small):
    grid = cells("families", seeds=[0])
    known = {x.key for x in small}
    (job,) = trained(grid, names.WITH_FAMILIES)
    further = job["data"].pop("further")
    assert job == trained(grid, names.MIXTURE)[0]
    assert [sum(x.startswith(y) for x in further) for y in ("softened", "yukawa", "mond")] == [
        16
    ] * 3
    assert not set(further) & {"softened_length_0.7", "yukawa_length_3", "mond_a0_40"}
    assert {x.key for x in grid if x.case.arm in (names.MIXTURE, names.ALONE)} & known
    asked = [x for x in grid if x.case.kind == names.FAMILY]
    assert {x.case.arm for x in asked} == {
        *("-", names.MIXTURE, names.WITH_FAMILIES, names.ALONE, names.UNTRAINED),
        *("control", "ceiling"),
    }  # fmt: skip


def test_each_value_counts_once_and_in_order():
    settings = STUDY.resolve(STUDY.settings("small", seeds=[1, 1], prompts=[8, 4, 8]))
    assert settings.seeds == (1,)
    assert settings.prompts == (4, 8)


@pytest.mark.full
@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--low=-3.2 --held-out=", "'power_a1_n3.2': n must be"),
        ("--protocol=identifiable --low=-2.97 --held-out=", "turn in 0.12 years"),
        ("--single=-3.5", "'power_a1_n3.5': n must be"),
        ("--held-out=-2.2", "ascending and in pairs"),
        ("--held-out=-1,-2", "ascending and in pairs"),
        ("--held-out=-2.75,0.25", "nothing is left"),
        ("--tested=-2.5,-1.5", "tested needs three worlds or more"),
        ("--tested=-2.5,-2,-1", "two or more of them not held out"),
        ("--tested=-2.5,-1.5,1", "tested must lie from low -2.75 to high 0.25, got 1"),
        ("--prompts=16", "prompts must be of at most 12 steps"),
        ("--n-fitted=400", "n_fitted must be at most n_test 300, got 400"),
        ("--families=logarithmic", "families must be among softened, yukawa, mond, got 'logar"),
        ("--exchanged=-1.5", "exchanged needs a law and another one, got -1.5 alone"),
        ("--exchanged=-1.5,-2.5 --n-exchanged=9", "of 9 systems of law 'power_a1_n1.5' only"),
        ("--n-laws=0", "n_laws must be at least 1"),
        ("--training.accelerator=cuda", "accelerator cuda needs 1 CUDA device"),
    ],
)
@pytest.mark.usefixtures("without_a_gpu")
def test_bad_input_is_one_line_and_changes_nothing(refused_run, flag, message):
    assert message in refused_run("worlds", "--executor=here", *flag.split(" "))


def test_a_step_that_tells_the_law_is_trained_and_asked_in_its_own_protocol():
    grid = cells("tiny", protocol="identifiable")
    assert {x.case.protocol for x in grid} == {"identifiable"}
    (job,) = trained(grid, names.MIXTURE)
    assert job["model"]["protocol"] == job["data"]["protocol"] == "identifiable"
    asked = {x.arguments["world"]["name"] for x in grid if "world" in x.arguments}
    assert asked == {"identifiable"}
    with pytest.raises(ValueError, match="unknown protocol 'paper'; choose from neutral_step"):
        cells("tiny", protocol="paper")
