"""Studies of recall, run at their smallest presets: records, reports, a kill, bad input."""

import dataclasses
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import attention
from benchmarks.__main__ import main, packages
from benchmarks.recall import mad_settings
from orbits.runs import folder, studies, study
from tests.waiting import wait_until

ROOT = Path(__file__).parents[3]
STUDIES = ("mad", "mqar", "mqar_mixture", "passkey_short", "regbench")
WITH_MATRICES = ("backcopy",)
"""Studies that look at attention matrices, which linear mixers do not have."""


def get(name):
    return studies.get(packages(), name)


def kept(out):
    """Return when each cell was finished."""
    return {path: path.stat().st_mtime_ns for path in out.glob("cells/*/cell.json")}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=[] if x == "mqar" else pytest.mark.full)
        for x in (*STUDIES, *WITH_MATRICES)
    ],
)
def test_the_smallest_run_ends_in_a_report(name, tiny_run):
    made, out = get(name), tiny_run(name)
    results, manifest = folder.load(out)
    assert all(result.ok for result in results), [result.error for result in results]
    assert (manifest["config"]["study"], manifest["config"]["version"]) == (name, made.version)
    for result in results:
        assert result.case.kind == "measurement"
        for metric, value in result.metrics.items():
            assert value.direction == made.quantity(metric).direction
            assert value.n >= 1
    assert "report:" in study.report(made, out)
    page = (out / "report.html").read_text()
    assert "data:image/png;base64," in page
    text = (out / "report.md").read_text()
    assert all(result.case.variant in text for result in results)
    for what in made.deviations:
        assert f"| {what.replace('_', chr(92) + '_')} |" in text
    if made.published:
        assert "| row | metric | paper | ours | verdict | why |" in text


@pytest.mark.heavy
def test_a_killed_run_continues_and_ends_as_if_nothing_had_happened(tiny_run, tmp_path):
    whole, out = tiny_run("mqar"), tmp_path / "out"
    command = ["run", "mqar", "--preset", "tiny", "--executor", "here"]
    command += ["--training.checkpoint-steps", "5", "--out", str(out)]
    program = [sys.executable, "-m", "benchmarks", *command]
    with subprocess.Popen(program, cwd=ROOT, stderr=subprocess.DEVNULL) as killed:
        wait_until(lambda: list(out.glob("cells/*.scratch/last.ckpt")), "a checkpoint")
        killed.send_signal(signal.SIGKILL)
    assert not (out / "results.jsonl").exists()
    before = kept(out)
    main(command)
    assert before.items() <= kept(out).items()
    assert not list(out.glob("cells/*.scratch"))
    metrics = [[result.metrics for result in folder.load(each)[0]] for each in (whole, out)]
    assert metrics[0] == metrics[1]


@pytest.mark.full
@pytest.mark.parametrize("name", STUDIES)
def test_linear_mixers_and_ablations_are_rows_of_their_own(name):
    asked = (*attention.linear.names(), "zeros_no_norm")
    settings = dataclasses.replace(get(name).settings("tiny"), attention=asked)
    assert {cell.case.variant for cell in get(name).cells(settings)} >= set(asked)


@pytest.mark.full
def test_mad_is_scored_as_published_beside_its_own_score(tiny_run):
    made, out = get("mad"), tiny_run("mad")
    results = folder.load(out)[0]
    for result in results:
        # 64 test rows are one batch, whose mean is the score of all rows.
        ours = result.value(f"acc@{result.case.get('problem')}")
        assert result.value("batch_macro_accuracy") == ours
    score = dataclasses.replace(results[0].metrics["batch_macro_accuracy"], value=12.5)
    changed = [
        dataclasses.replace(x, metrics={**x.metrics, "batch_macro_accuracy": score})
        for x in results
    ]
    assert set(made.ours(changed, "")["softmax"][0].values()) == {12.5}
    (table,) = (x for x in made.tables(results) if x.title == "The same, scored as published")
    headings = [column.heading for column in table.columns]
    assert headings[-2:] == ["batch_macro_accuracy", "micro"]


def test_mads_paper_preset_is_all_settings_and_the_mixtures_zoologys():
    exercises = list(get("mad").settings("paper").exercises())
    assert len(exercises) == 66
    assert [x.problem for x in exercises] == [x.problem for x in mad_settings.settings()]
    assert [x.n_train for x in exercises] == [x.n_train for x in mad_settings.settings()]
    loads = {x.setting["load"] for x in get("mqar").settings("paper").exercises()}
    assert loads == {"64/4", "128/8", "256/16", "512/64"}
    (mixture, _) = get("mqar_mixture").settings("gpu").exercises()
    assert (mixture.n_train, mixture.problem.vocab_size) == (180_000, 8192)
    assert list(mixture.tests) == [
        "64/4", "64/8", "64/16", "128/32", "256/64", "512/128", "1024/256",
    ]  # fmt: skip


def test_flags_change_a_preset_and_nothing_else(capsys):
    arguments = ["--lrs", "1e-3, 1e-2", "--n-train", "none", "--seq-lens", "32,64"]
    main(["run", "mqar", *arguments, "--n-pairs", "4,4", "--exponents", "", "--dry-run"])
    said = capsys.readouterr().out.splitlines()
    changes = {"lrs": [1e-3, 1e-2], "seq_lens": [32, 64], "n_pairs": [4, 4], "exponents": []}
    expected = study.all_cells(get("mqar"), get("mqar").settings("small", **changes))
    n = len(expected)
    assert said[:n] == [f"{cell.key}  {cell.label}" for cell in expected]
    assert said[n] == f"{n} cells"


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mqar", "--n-pairs", "9"], "at least 4 * n_pairs = 36, got 32"),
        (["mqar", "--vocab-size", "8", "--n-pairs", "4"], "the keys of vocab_size 8, got 4"),
        (["mqar", "--lrs", ""], "lrs must not be empty"),
        (["mqar", "--steps", "10"], "val_steps must be at most steps 10, got 50"),
        (["mqar", "--mlp", "foo"], "unknown mlp 'foo'"),
        (["mqar", "--optimizer", "sgd"], "unknown optimizer 'sgd'"),
        (["mqar", "--lrs", "-1"], "lrs must be at least"),
        (["mqar", "--lrs", "inf"], "--lrs must be a finite number, got 'inf'"),
        (["mqar", "--stop-at", "99"], "stop_at must be in (0, 1], got 99"),
        (["mqar", "--min-lr-ratio", "7"], "min_lr_ratio must be in [0, 1], got 7"),
        (["mqar", "--training.devices", "0"], "devices must be at least 1, got 0"),
        (["mqar", "--workers", "0"], "--workers must be at least 1"),
        (["mqar", "--attention", "softmax", "--warm-up", "0.5"], "--warm-up needs a re-weighted"),
        (["mqar", "--attention", "softmax", "--epochs", "2"], "give n_train"),
        (["mqar", "--head-dims", "7"], "RoPE needs an even head_dim, got 7"),
        (["mqar", "--init", "zero"], "init must be ours or published, got 'zero'"),
        (["mqar_variants", "--kinds", "stacked"], "unknown kind 'stacked'; choose from repeated, "),
        (["mad", "--batch-size", "0"], "batch_size must be at least 1, got 0"),
        (
            ["mad", "--init", "published", "--problems", "compression"],
            "has no form for compression",
        ),
        (["mad", "--problems", "copying"], "unknown problem 'copying'"),
        (["mad", "--problems", ""], "problems must not be empty"),
        (["mad", "--train-share", "2"], "train_share must be in (0, 1], got 2"),
        (["regbench", "--max-strings", "9"], "min_strings must be in [1, max_strings 9]"),
        (["passkey_short", "--seq-len", "20"], "seq_len must be at least"),
        (["passkey_short", "--multiples", ""], "multiples must not be empty"),
        (["passkey_short", "--multiples", "5"], "multiples must be among"),
    ],
)
def test_bad_input_is_one_line_before_any_work(arguments, message, refused_run):
    assert message in refused_run(*arguments)
