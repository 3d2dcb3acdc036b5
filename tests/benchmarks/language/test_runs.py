"""Studies of language models: their smallest runs, what they share, and what they refuse."""

import math
import platform

import pytest

from attention import linear
from benchmarks.language import ablations, extrapolation, passkey, sink
from benchmarks.language.base import measured
from orbits.runs import folder, study
from orbits.runs.executors import Execution

pytestmark = pytest.mark.filterwarnings("ignore")

HERE = Execution("here")
STUDIES = {x.STUDY.name: x.STUDY for x in (ablations, extrapolation, passkey, sink)}


@pytest.mark.full
@pytest.mark.parametrize("name", STUDIES)
def test_the_smallest_run_ends_in_a_report(name, tiny_run):
    found, out = STUDIES[name], tiny_run(name)
    results, manifest = folder.load(out)
    assert all(result.ok for result in results), [result.error for result in results]
    assert manifest["config"]["study"] == name
    assert measured(results)
    for result in results:
        for metric, value in result.metrics.items():
            quantity = found.quantity(metric)
            assert (value.direction, value.unit) == (quantity.direction, quantity.unit)
    assert all(m.n >= 1 for result in measured(results) for m in result.metrics.values())
    assert "report:" in study.report(found, out)
    page = (out / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert "://" not in page.split("<h2>Provenance")[0], "the page must be self-contained"
    text = (out / "report.md").read_text().replace("\\", "")
    for result in measured(results):
        assert result.case.variant in text
    assert "| row | metric | paper | ours | verdict | why |" in text


@pytest.mark.full
def test_results_say_the_perplexity_and_the_text_of_a_language_model(tiny_run):
    out = tiny_run("extrapolation")
    results = measured(folder.load(out)[0])
    for result in results:
        loss, perplexity = (result.metrics[f"{name}@4x"] for name in ("loss", "ppl"))
        assert perplexity.value == pytest.approx(math.exp(loss.value))
        assert perplexity.stderr == pytest.approx(perplexity.value * loss.stderr)
        assert result.manifest["corpus"]["corpus"] == "python-standard-library"
    sha256 = results[0].manifest["corpus"]["sha256"]
    said = f"python-standard-library (Python {platform.python_version()}, sha256 {sha256[:16]})"
    study.report(STUDIES["extrapolation"], out)
    assert said in (out / "report.md").read_text().replace("\\", "")
    assert said in (out / "report.html").read_text()


@pytest.mark.full
def test_another_study_takes_trained_models(tiny_run, tmp_path):
    source, out = tiny_run("extrapolation"), tmp_path / "sink"
    settings = sink.STUDY.settings("tiny", mask_at=[])
    study.run(sink.STUDY, settings, out, HERE, preset="tiny", sources=[source])
    trained = {path.name for path in source.glob("cells/*") if (path / "last.ckpt").exists()}
    assert trained
    assert trained <= {path.name for path in out.glob("cells/*")}
    for name in trained:
        ours, theirs = (place / "cells" / name / "cell.json" for place in (out, source))
        assert ours.read_bytes() == theirs.read_bytes(), "taken, not trained again"


def test_linear_mixers_and_ablations_are_rows_of_their_own():
    names = (*linear.names(), "zeros_no_norm")
    settings = extrapolation.STUDY.settings("tiny", attention=names)
    assert {cell.case.variant for cell in extrapolation.STUDY.cells(settings)} >= set(names)


@pytest.mark.full
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recall"], "unknown study 'recall'"),
        (["extrapolation", "--seeds", "one"], "--seeds must be a whole number, got 'one'"),
        (["extrapolation", "--multiples", "3"], "multiples must be among"),
        (["extrapolation", "--multiples", ""], "multiples must not be empty"),
        (["extrapolation", "--eval-tokens", "1024"], "at least two of them, got 1024"),
        (["extrapolation", "--eval-tokens", "3000"], "eval_tokens must be a multiple of 1024"),
        (["extrapolation", "--eval-tokens", str(2**30)], "held-out text has"),
        (["extrapolation", "--eval-path", "nowhere.txt"], "no such file or folder"),
        (["extrapolation", "--path", "nowhere.txt"], "no such file or folder"),
        (["extrapolation", "--corpus", "wikitext"], "did you mean wikitext103"),
        (["extrapolation", "--reuse", "nowhere"], "--reuse nowhere: no results"),
        (["extrapolation", "--steps", "0"], "steps must be at least 1, got 0"),
        (["extrapolation", "--tokenizer", "nope"], "tokenizer 'nope' is no file"),
        (["extrapolation", "--head-dim", "7"], "RoPE needs an even head_dim, got 7"),
        (["extrapolation", "--training.accelerator", "tpu"], "accelerator must be one of"),
        (["extrapolation", "--path", "a", "--shards", "b"], "not both"),
        (["extrapolation", "--checkpoints", "a:0=nowhere.ckpt"], "nowhere.ckpt: no such file"),
        (["extrapolation", "--checkpoints", "a=nowhere.ckpt"], "LABEL:SEED=PATH"),
        (["extrapolation", "--checkpoints", "a", "--steps", "7"], "--steps changes nothing"),
        (["extrapolation", "--checkpoints", "a", "--seq-len", "7"], "--seq-len changes nothing"),
        (["passkey", "--checkpoints", "a", "--training.devices", "2"], "so --training.devices"),
        (["passkey", "--seq-len", "64"], "n_tokens must be at least"),
        (["passkey", "--multiples", ""], "multiples must not be empty"),
        (["sink", "--mask-at", "1000"], "mask_at must be in"),
        (["sink", "--shards", "nowhere"], "with shards, mask_at must be empty"),
        (["sink", "--checkpoints", "a.ckpt", "--mask-at", "2"], "--mask-at changes nothing"),
        (["sink", "--n-windows", "0"], "n_windows must be at least 1, got 0"),
        (["sink", "--n-windows", "10000000"], "held-out text has"),
    ],
)
def test_bad_input_is_one_line_before_any_work(arguments, message, refused_run):
    assert message in refused_run(*arguments)
