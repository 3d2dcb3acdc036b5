"""A whole run of the variants of recall at a tiny size."""

import pytest

from benchmarks.__main__ import main
from benchmarks.recall.blind import by_place
from benchmarks.recall.mqar_variants import STUDY, Variants
from orbits.runs.result import Case, Result


@pytest.mark.full
def test_each_kind_has_its_rows_and_figure(tmp_path, capsys):
    out = tmp_path / "out"
    sizes = ["--steps", "4", "--val-steps", "2", "--n-test", "8", "--n-val", "8"]
    run = ["run", "mqar_variants", "--preset", "tiny", "--executor", "here"]
    main([*run, "--out", str(out), *sizes])
    capsys.readouterr()
    main(["report", str(out), "--full"])
    said = capsys.readouterr().out
    for kind in ("repeated", "forgetting", "compositional"):
        assert f"Right answers, {kind} recall of 4 pairs" in said
        assert (out / "figures" / f"{kind}.png").is_file()


def test_the_guess_is_of_a_runs_own_problem():
    levels = {}
    for n_pairs, n_updates in ((4, 1), (4, 4), (8, 1)):
        settings = Variants(kinds=("forgetting",), seq_len=64, n_pairs=n_pairs, n_updates=n_updates)
        (exercise,) = settings.exercises()
        case = Case("mqar_variants", "measurement", "softmax", seed=0, setting=exercise.setting)
        headline = STUDY.headline([Result(case, {})])
        levels[n_pairs, n_updates] = headline.level
        assert headline.level == max(100 / n_pairs, by_place(exercise.problem))
    assert levels[8, 1] < levels[4, 1]
