"""What every benchmark task owes its user, over all of them; a new file is picked up by itself."""

import dataclasses
import json
import math
import platform
import subprocess
import sys

import pytest

import attention
from benchmarks import published, settings_flags, tasks
from benchmarks.__main__ import main
from benchmarks.task import MEASUREMENT, Measured, by_seed, measurements
from orbits.command_line import OneLineParser
from symreg import results

DIRECTIONS = {"higher", "lower", "none"}
RUNS = [name for name in tasks.names() if name not in ("cost", "downstream")]
"""Tasks whose tiny preset needs neither a clock nor a library of its own."""

MORE_PRESETS = {"mqar": ("mixture",)}

LIKE_OTHERS = ("ablations", "passkey", "regbench")
"""Those that share nearly all of their code with another one."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return a function that runs a task's tiny preset once and gives its folder."""
    made = {}

    def run(name):
        if name not in made:
            out = tmp_path_factory.mktemp(name) / "out"
            main(["run", name, "--preset", "tiny", "--jobs", "1", "--out", str(out)])
            made[name] = out
        return made[name]

    return run


@pytest.mark.parametrize("name", tasks.names())
def test_a_task_says_what_it_is(name):
    task = tasks.get(name)
    assert task.name == name
    assert task.version >= 1
    assert set(task.presets) == {"tiny", "small", "gpu", "paper", *MORE_PRESETS.get(name, ())}
    assert all(settings.preset == key for key, settings in task.presets.items())
    assert {metric.direction for metric in task.metrics.values()} <= DIRECTIONS
    assert all(metric.unit and metric.about for metric in task.metrics.values())
    for table in task.published:
        assert published.tables(table), f"{table} names no published table"
    known = {table.table for key in task.published for table in published.tables(key)}
    assert set(task.same_scale) <= known


@pytest.mark.parametrize("name", tasks.names())
def test_cells_are_pure_and_have_addresses_of_their_own(name):
    task = tasks.get(name)
    for preset in ("tiny", "small"):
        cells, again = (task.cells(task.presets[preset]) for _ in range(2))
        assert [cell.key for cell in cells] == [cell.key for cell in again]
        assert len({cell.key for cell in cells}) == len(cells)
        json.dumps([dict(cell.config) for cell in cells])
        assert {cell.kind for cell in cells} <= set(task.compute())


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LIKE_OTHERS)) for n in RUNS]
)
def test_the_smallest_run_ends_in_a_report(name, runs, capsys):
    task, out = tasks.get(name), runs(name)
    lines, manifest = results.load(out)
    assert all(line["status"] == "ok" for line in lines), [x["error"] for x in lines]
    assert manifest["config"]["benchmark"] == name
    asked = measurements(lines)
    assert asked
    for line in asked:
        assert line["task_version"] == task.version
        assert line["manifest"]["config"]["row"] == line["row"]
        for metric, found in line["metrics"].items():
            assert set(found) == {"value", "n", "stderr", "direction"}
            assert found["direction"] == task.metric(metric).direction
            assert found["n"] >= 1
    main(["report", str(out)])
    assert "report:" in capsys.readouterr().out
    page = (out / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert "://" not in page.split("<h2>Provenance")[0], "the page must be self-contained"
    text = (out / "report.md").read_text()
    for line in asked:
        assert line["row"]["model"] in text
    for what, how in task.deviations.items():
        assert f"| {what} | {how} |" in text
    if task.published:
        assert "| row | metric | paper | ours | verdict | why |" in text


@pytest.mark.parametrize("name", ["mqar", "mad", "regbench", "extrapolation"])
def test_linear_mixers_and_ablations_are_rows_of_their_own(name):
    asked = (*attention.linear.names(), "zeros_no_norm")
    task = tasks.get(name)
    cells = task.cells(dataclasses.replace(task.presets["tiny"], attentions=asked))
    assert {cell.config["row"]["model"] for cell in cells} >= set(asked)


def test_mad_is_scored_as_published_beside_its_own_score(runs):
    task, out = tasks.get("mad"), runs("mad")
    lines = measurements(results.load(out)[0])
    for line in lines:
        # 64 test rows are one batch, whose mean is the score of all rows.
        ours = line["metrics"][f"acc@{line['row']['problem']}"]["value"]
        assert line["metrics"]["batch_macro_accuracy"]["value"] == ours
    changed = json.loads(json.dumps(lines))
    for line in changed:
        line["metrics"]["batch_macro_accuracy"]["value"] = 12.5
    assert set(task.ours(changed)["softmax"][0].values()) == {12.5}
    (table,) = (x for x in task.tables(lines) if x.title == "The same, scored as published")
    assert table.cells[0][-2:] == ["batch_macro_accuracy", "micro"]


def test_a_linear_mixer_learns_what_attention_is_asked(tmp_path):
    arguments = ["--preset", "tiny", "--jobs", "1", "--attentions", "zeros,gla", "--lrs", "3e-3"]
    main(["run", "mqar", *arguments, "--out", str(tmp_path)])
    asked = measurements(results.load(tmp_path)[0])
    assert [line["row"]["model"] for line in asked] == ["zeros", "gla"]
    main(["report", str(tmp_path)])
    assert "| zeros |" in (tmp_path / "report.md").read_text()


def test_a_run_again_computes_nothing(runs, capsys):
    out = runs("extrapolation")
    before = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/cell.json")}
    main(["run", "extrapolation", "--preset", "tiny", "--jobs", "1", "--out", str(out)])
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_language_models_lines_say_its_perplexity_and_its_text(runs):
    out = runs("extrapolation")
    asked = measurements(results.load(out)[0])
    for line in asked:
        loss, perplexity = (line["metrics"][f"{name}@4x"] for name in ("loss", "ppl"))
        assert perplexity["value"] == pytest.approx(math.exp(loss["value"]))
        assert perplexity["stderr"] == pytest.approx(perplexity["value"] * loss["stderr"])
        assert line["manifest"]["corpus"]["corpus"] == "python-standard-library"
    sha256 = asked[0]["manifest"]["corpus"]["sha256"]
    said = f"python-standard-library (Python {platform.python_version()}, sha256 {sha256[:16]})"
    main(["report", str(out)])
    assert said in (out / "report.md").read_text()
    assert said in (out / "report.html").read_text()


def test_another_task_takes_trained_models(runs, tmp_path):
    source = runs("extrapolation")
    out = tmp_path / "sink"
    arguments = ["--preset", "tiny", "--jobs", "1", "--mask-at", "", "--reuse", str(source)]
    main(["run", "sink", *arguments, "--out", str(out)])
    trained = {path.name for path in source.glob("cells/*") if (path / "last.ckpt").exists()}
    assert trained
    assert trained <= {path.name for path in out.glob("cells/*")}
    for name in trained:
        ours, theirs = (folder / "cells" / name / "cell.json" for folder in (out, source))
        assert ours.read_bytes() == theirs.read_bytes(), "taken, not trained again"


def test_a_dry_run_writes_nothing(tmp_path, capsys):
    main(["run", "mqar", "--preset", "small", "--dry-run", "--out", str(tmp_path / "out")])
    said = capsys.readouterr().out
    task = tasks.get("mqar")
    assert f"{len(task.cells(task.presets['small']))} cells" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["extrapolation", "--attentions", "softmaxx"], "softmaxx"),
        (["extrapolation", "--seeds", ""], "seeds must not be empty"),
        (["extrapolation", "--seeds", "one"], "seeds"),
        (["extrapolation", "--multiples", "3"], "multiples must be among"),
        (["extrapolation", "--eval-tokens", "1024"], "at least two of them, got 1024"),
        (["extrapolation", "--eval-tokens", "3000"], "eval_tokens must be a multiple of 1024"),
        (["extrapolation", "--path", "nowhere.txt"], "no such file or folder"),
        (["extrapolation", "--reuse", "nowhere"], "--reuse nowhere: no results"),
        (["mqar", "--n-pairs", "9"], "n_pairs"),
        (["mqar", "--vocab-size", "8", "--n-pairs", "4"], "vocab_size"),
        (["mqar", "--lrs", ""], "lrs must not be empty"),
        (["mad", "--problems", "copying"], "unknown problem 'copying'"),
        (["passkey", "--trained.seq-len", "20"], "seq_len must be at least"),
        (["passkey", "--form", "spoken"], "form must be"),
        (["sink", "--mask-at", "1000"], "mask_at must be in"),
        (["recall"], "invalid choice: 'recall'"),
        (["mqar", "--preset", "huge"], "invalid choice: 'huge'"),
        (["mqar", "--steps", "10"], "val_steps must be at most steps 10, got 50"),
        (["mqar", "--mlp", "foo"], "unknown mlp 'foo'"),
        (["mqar", "--optimizer", "sgd"], "unknown optimizer 'sgd'"),
        (["mqar", "--lrs", "-1"], "lrs must be at least"),
        (["mad", "--batch-size", "0"], "batch_size must be at least 1, got 0"),
        (["extrapolation", "--steps", "0"], "steps must be at least 1, got 0"),
        (["extrapolation", "--tokenizer", "nope"], "nope"),
        (["extrapolation", "--head-dim", "7"], "RoPE needs an even head_dim, got 7"),
        (["passkey", "--form", "asked", "--asked.seq-len", "64"], "n_tokens must be at least"),
        (["passkey", "--trained.training.accelerator", "tpu"], "accelerator must be one of"),
        (["sink", "--shards", "nowhere"], "with shards, mask_at must be empty"),
        (["sink", "--checkpoints", "a.ckpt", "--mask-at", "2"], "mask_at changes nothing"),
        (["extrapolation", "--checkpoints", "a:0=nowhere.ckpt"], "nowhere.ckpt: no such file"),
        (["extrapolation", "--checkpoints", "a=nowhere.ckpt"], "LABEL:SEED=PATH"),
        (["extrapolation", "--checkpoints", "a", "--steps", "7"], "steps changes nothing"),
        (["passkey", "--asked.checkpoints", "a.ckpt"], "--asked. changes nothing"),
        (["passkey", "--form", "asked", "--trained.lrs", "1"], "--trained. changes nothing"),
        (["extrapolation", "--eval-path", "nowhere.txt"], "no such file or folder"),
        (["extrapolation", "--corpus", "wikitext"], "did you mean wikitext103"),
        (["mqar", "--training.devices", "0"], "devices must be at least 1, got 0"),
        (["mqar", "--jobs", "0"], "--jobs must be at least 1"),
        (["extrapolation", "--multiples", ""], "multiples must not be empty"),
        (["extrapolation", "--eval-tokens", str(2**30)], "held-out text has"),
        (["sink", "--n-windows", "0"], "n_windows must be at least 1, got 0"),
        (["sink", "--n-windows", "10000000"], "held-out text has"),
        (["passkey", "--multiples", ""], "multiples must not be empty"),
        (["mad", "--problems", ""], "problems must not be empty"),
        (["mqar", "--stop-at", "99"], "stop_at must be in (0, 1], got 99"),
        (["mqar", "--min-lr-ratio", "7"], "min_lr_ratio must be in [0, 1], got 7"),
        (["mqar", "--lrs", "inf"], "lrs must be finite"),
        (["mqar", "--attentions", "softmax", "--exponents", "3"], "needs a re-weighted variant"),
        (["mqar", "--attentions", "softmax", "--warm-up", "0.5"], "--warm-up needs a re-weighted"),
        (["sink", "--attentions", "lazy", "--exponents", "3"], "--exponents needs a re-weighted"),
        (["passkey", "--attentions", "lssa", "--exponents", "3"], "needs a re-weighted variant"),
    ],
)
def test_bad_input_is_one_line_before_any_work(arguments, message, tmp_path, capsys):
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as stopped:
        main(["run", *arguments, "--out", str(out)])
    said = capsys.readouterr().err
    assert stopped.value.code == 2
    assert message in said
    assert len(said.splitlines()) == 1
    assert not out.exists()


def test_help_is_fast_and_names_every_task():
    code = (
        "import sys; from benchmarks.__main__ import main\n"
        "try: main(['run', '--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'lightning', 'matplotlib', 'lm_eval') if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1] == "[]", "help must not wait for heavy imports"
    for name in tasks.names():
        assert name in said.stdout


@pytest.mark.parametrize("name", tasks.names())
def test_every_field_is_a_flag_with_its_documentation(name):
    parser = OneLineParser()
    settings_flags.add(parser, tasks.get(name).presets)
    settings = tasks.get(name).presets["small"]
    fields = {field.name for field in dataclasses.fields(settings)} - {"preset", "about", "jobs"}
    fields -= set(settings.not_flags)
    plain = {f for f in fields if not dataclasses.is_dataclass(getattr(settings, f))}
    flags = {action.dest: action.help for action in parser._actions}
    assert plain <= set(flags)
    assert all(flags[name] for name in plain)


def test_flags_change_a_preset_and_nothing_else():
    presets = tasks.get("mqar").presets
    parser = OneLineParser()
    settings_flags.add(parser, presets)
    given = parser.parse_args(["--lrs", "1e-3, 1e-2", "--n-train", "5", "--exponents", ""])
    changed = settings_flags.apply(given, presets)
    expected = dataclasses.replace(presets["small"], lrs=(1e-3, 1e-2), n_train=5, exponents=())
    assert changed == expected
    given = parser.parse_args(["--n-train", "none", "--seq-lens", "32,64", "--n-pairs", "4,4"])
    changed = settings_flags.apply(given, presets)
    assert (changed.n_train, changed.seq_lens, changed.n_pairs) == (None, (32, 64), (4, 4))


def test_values_by_seed():
    def line(seed, value, kind=MEASUREMENT, status="ok"):
        metrics = {"loss": {"value": value}} if value is not None else {}
        row = {"model": "a", "ntk": seed == 2, "seed": seed}
        return {"kind": kind, "status": status, "row": row, "metrics": metrics}

    lines = [
        line(0, 1.0), line(1, 3.0), line(2, 5.0), line(3, None), line(4, 7.0, kind="training"),
        line(5, 9.0, status="failed"),
    ]  # fmt: skip
    assert by_seed(lines, "loss", "model") == {("a",): {0: 1.0, 1: 3.0, 2: 5.0}}
    assert by_seed(lines, "loss", "model", "ntk") == {
        ("a", False): {0: 1.0, 1: 3.0},
        ("a", True): {2: 5.0},
    }
    with pytest.raises(ValueError, match=r"loss: two lines of \('a',\), seed 0"):
        by_seed([line(0, 1.0), line(0, 2.0)], "loss", "model")


def test_a_mean_knows_its_error():
    found = Measured.mean([1.0, 2.0, 3.0, 6.0])
    assert (found.value, found.n) == (3.0, 4)
    assert found.stderr == pytest.approx((14 / 3 / 4) ** 0.5)
    assert Measured.mean([2.0]).stderr is None


def test_a_metric_that_was_not_declared_is_refused():
    with pytest.raises(ValueError, match="unknown metric 'speed' of mqar; choose from accuracy"):
        tasks.get("mqar").line({}, {"speed": Measured(1.0, 1)})
