"""The cells of implied: the flagship's world models, asked the same in every world."""

from pathlib import Path

import pytest

from benchmarks.implied.implied import STUDY
from benchmarks.newton import newton
from orbits.runs import reuse, study

KEPT = Path(__file__).parents[3] / "benchmarks/results/newton-exam"


def cells(preset="small", **changes):
    return study.all_cells(STUDY, STUDY.resolve(STUDY.settings(preset, **changes)))


@pytest.fixture(scope="module")
def headline():
    return cells("headline")


@pytest.mark.full
def test_world_models_are_those_that_runs_of_the_flagship_have(headline):
    mine = {cell.key for cell in headline if cell.case.kind == "world model"}
    for law in ("newton", "softened"):
        settings = newton.STUDY.settings(
            "small", law=law, attention=["softmax", "lssar", "gla"], exponents=[15.0],
            seeds=[0, 1, 2], engine=["powerlaw"],
        )  # fmt: skip
        theirs = [
            cell.key
            for cell in study.all_cells(newton.STUDY, settings)
            if cell.case.kind == "world model"
        ]
        assert len(theirs) == 9
        assert mine >= set(theirs)


def test_every_attention_is_trained_in_every_world_and_asked_once(headline):
    trained = [cell for cell in headline if cell.case.kind == "world model"]
    assert len(trained) == 4 * 8 * 3
    asked = [cell for cell in headline if cell.case.arm == "pretrained"]
    assert {cell.needs["pretrained"].key for cell in asked} == {cell.key for cell in trained}
    for cell in asked:
        assert cell.needs["pretrained"].case.law == cell.case.law
        assert cell.needs["fits"].case.law == cell.case.law
        assert cell.arguments["question"]["outside"] == [cell.case.law]
        assert list(cell.arguments["question"]["protocol_args"]) == [
            "power_1_5", "newton", "power_2_5", "softened",
        ]  # fmt: skip
    assert len([cell for cell in headline if cell.case.arm == "untrained"]) == 8 * 3


def test_softmax_alone_is_nine_trainings_and_few_further_cells():
    kinds = [cell.case.kind for cell in cells()]
    assert kinds.count("world model") == 9
    assert len(kinds) == 9 + 1 + 3 + 3 + 9


def test_kept_world_models_of_newtons_world_serve(tmp_path):
    plan = reuse.plan(cells(), [KEPT], tmp_path / "out", STUDY.restore)
    assert len(plan.taken) == 3


@pytest.mark.full
@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--worlds=", "worlds must not be empty"),
        ("--worlds=newton,inverse_cube", "'inverse_cube' does not bind"),
        ("--prompts=inverse_cube", "'inverse_cube' does not bind trajectory"),
        ("--worlds=newtn", "unknown law 'newtn'"),
        ("--shifts=nearer", "unknown shift 'nearer'"),
        ("--worlds=newton,power_1_5 --prompts=harmonics", "unknown law 'harmonics'"),
        ("--seeds=0,1", "needs at least 3"),
        ("--n-sequences=1", "n_sequences must be at least 2, got 1"),
        ("--recipe=gpu", "accelerator cuda needs 1 CUDA device"),
        ("--recipe=paper", "accelerator cuda needs"),
    ],
)
@pytest.mark.usefixtures("without_a_gpu")
def test_bad_input_is_one_line_and_changes_nothing(refused_run, flag, message):
    assert message in refused_run("implied", "--executor=here", *flag.split(" "))
