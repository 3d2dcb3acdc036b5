"""One command for every figure of the kernels."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.speed import __main__ as both
from benchmarks.speed import gpt2, kernels


@pytest.fixture
def started(monkeypatch):
    """Return the commands that were started, each of which ends with the next of ``codes``."""
    found, codes = [], [0, 0]

    def run(command, check):
        found.append(command)
        return subprocess.CompletedProcess(command, codes[len(found) - 1])

    monkeypatch.setattr(subprocess, "run", run)
    return found, codes


def test_it_runs_both_in_less_than_ten_minutes(tmp_path, started):
    assert both.main(["--out", str(tmp_path)]) == 0
    assert [command[2:] for command in started[0]] == [
        ["benchmarks.speed.kernels", "--out", str(tmp_path / "kernels.jsonl"),
         "--figure", str(tmp_path / "kernels.png")],
        ["benchmarks.speed.gpt2", "--out", str(tmp_path / "gpt2.jsonl")],
    ]  # fmt: skip
    assert kernels.MINUTES + gpt2.MINUTES < 10


@pytest.mark.parametrize("codes", [(1, 0), (0, 1), (-9, 0)])
def test_the_second_runs_whatever_the_first_says_and_either_fails_both(tmp_path, started, codes):
    started[1][:] = codes
    assert both.main(["--out", str(tmp_path)]) == 1
    assert len(started[0]) == 2


@pytest.mark.parametrize("name", ["kernels.jsonl", "kernels.png", "gpt2.jsonl"])
def test_nothing_starts_where_a_result_would_be_overwritten(tmp_path, started, name, capsys):
    (tmp_path / name).write_text("kept")
    with pytest.raises(SystemExit) as stop:
        both.main(["--out", str(tmp_path)])
    assert stop.value.code == 2
    assert f"{name} exists" in capsys.readouterr().err
    assert not started[0]


@pytest.mark.parametrize("benchmark", [kernels, gpt2])
def test_each_alone_refuses_too(benchmark, tmp_path: Path, capsys):
    out = tmp_path / "kept.jsonl"
    out.write_text("kept")
    for flags, message in ((["--out", str(out)], "exists"), (["--minutes", "0"], "positive")):
        with pytest.raises(SystemExit) as stop:
            benchmark.main(flags)
        assert stop.value.code == 2
        assert message in capsys.readouterr().err
    assert out.read_text() == "kept"
