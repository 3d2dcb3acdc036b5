"""The exam of exported models: the flagship's own numbers, and what is refused."""

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from orbits.runs import folder

RUN = Path(__file__).parents[3] / "benchmarks/results/newton-exam"
HEAD, WORLD_MODEL = (str(RUN / "models" / f"softmax-{kind}-0") for kind in ("head", "world-model"))


@pytest.mark.full
def test_a_kept_head_has_the_numbers_of_its_kept_exam(tmp_path, capsys):
    out = tmp_path / "out"
    asked = ["--model", HEAD, "--shifts", "closer", "--baselines="]
    main(["run", "exam", "--executor", "here", "--out", str(out), *asked])
    (mine,) = [x for x in folder.load(out)[0] if x.case.arm == "force head"]
    (kept,) = [
        x
        for x in folder.load(RUN)[0]
        if x.case.kind == "exam" and x.case.arm == "pretrained"
        and (x.case.variant, x.case.seed) == ("softmax", 0)
    ]  # fmt: skip
    for name in ("times_ceiling", "times_ceiling@closer", "exponent@closer"):
        assert mine.metrics[name].value == pytest.approx(kept.metrics[name].value, rel=1e-3), name
    assert (mine.case.variant, mine.case.get("labels")) == ("softmax", 1000)
    capsys.readouterr()
    main(["report", str(out)])
    assert "the best model, softmax, force head, 1000 labels, errs" in capsys.readouterr().out


@pytest.mark.full
def test_two_trainings_have_a_figure_and_no_interval(tmp_path, capsys):
    twins = f"a:0={HEAD},a:1={HEAD.removesuffix('0')}1"
    run = ["run", "exam", "--preset", "tiny", "--executor", "here"]
    main([*run, "--out", str(tmp_path / "out"), "--model", twins])
    main(["report", str(tmp_path / "out")])
    assert "[too few to tell]" in capsys.readouterr().out
    assert (tmp_path / "out" / "figures" / "exam.png").is_file()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (WORLD_MODEL, "a NextTokenModel predicts no force; take a ForceModel"),
        (str(RUN), "not an exported model"),
        (f"{HEAD},{HEAD}", f"of seed 0; name it by what differs: LABEL:SEED={HEAD}"),
        ("missing.ckpt", "missing.ckpt: no such file"),
        ("", "no model is given; name one with --model"),
    ],
)  # fmt: skip
def test_what_cannot_be_examined_is_refused(model, words, tmp_path, refusal):
    run = ["run", "exam", "--preset", "tiny", "--out", str(tmp_path / "out"), "--model", model]
    assert words in refusal(main, run)
