"""A whole run of worlds at a tiny size."""

import shutil

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.training import CHECKPOINT
from benchmarks.worlds import names
from benchmarks.worlds.exchange import ROWS, ROWS_TOLD
from benchmarks.worlds.exchange_report import DONORS, TITLE
from orbits.runs import folder
from tests.benchmarks.runs import finished
from worldmodel.controls.names import IN_BINS
from worldmodel.models.load import load_model
from worldmodel.models.mixture import MixtureModel
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.donors import NO_DONOR, OTHER_LAW, WHOLE

FLAGS = (
    *("--steps", "3", "--prompts", "4,6"),
    *("--n-test", "4", "--n-fitted", "2", "--n-fits", "5", "--n-bins", "64"),
    *("--families", "softened", "--n-family-laws", "4"),
    *("--exchanged=-1,-0.5", "--n-exchanged", "20"),
)


@pytest.fixture
def tiny(tiny_run):
    return tiny_run("worlds", *FLAGS)


@pytest.mark.full
def test_everything_is_asked(tiny):
    results = finished(tiny)
    asked = {(x.case.variant, x.case.arm) for x in results if x.case.kind == "worlds"}
    arms = (names.MIXTURE, names.WITH_FAMILIES, names.TOLD, names.ALONE, names.UNTRAINED)
    models = {("softmax", arm) for arm in arms}
    controls = {(name, "control") for name in names.CONTROLS} | {(names.CEILING, "ceiling")}
    assert asked == models | controls
    controls -= {(x, "control") for x in (names.PLACES, names.PIECES, names.NEAREST_MEAN)}
    controls |= {(names.TABLE_WITH_FAMILIES, "control")}
    there = [x for x in results if x.case.setting.get(names.FAMILY) == "softened"]
    asked = {(x.case.variant, x.case.arm) for x in there}
    assert asked == (models - {("softmax", names.TOLD)}) | controls | {("true orbits", "-")}
    for result in there:
        assert {"S", "bias@0.7", "error@held-out"} <= set(result.metrics)
    given = [x for x in results if x.case.kind == names.EXCHANGE and x.case.arm == names.MIXTURE]
    assert {x.case.setting["donor"] for x in given} == {NO_DONOR, *DONORS}
    assert {x.case.setting["rows"] for x in given} == {WHOLE, *ROWS}
    told = [x for x in results if x.case.kind == names.EXCHANGE and x.case.arm == names.TOLD]
    assert {x.case.setting["rows"] for x in told} == {WHOLE, *ROWS_TOLD}
    bins = [x for x in results if x.case.variant == IN_BINS]
    (whole,) = (x for x in bins if x.case.setting["donor"] == OTHER_LAW)
    assert whole.metrics["share_exponent"].value == pytest.approx(1)
    for result in results:
        if result.case.arm == names.TOLD and result.case.kind == "worlds":
            has_own_step = result.case.setting.get("time step") is None
            assert ("log_score@trained" in result.metrics) == has_own_step, "the positive control"
        if result.case.kind == "worlds" and result.case.variant != names.PLACES:
            assert {"S", "exponent@-2.5", "bias@-2", "error@trained"} <= set(result.metrics)
        assert all(np.isfinite(x.value) for x in result.metrics.values()), result.case


@pytest.mark.full
def test_checkpoints_know_their_worlds_and_probes_refuse_them(tiny):
    results, _ = folder.load(tiny)
    (told,) = (x for x in results if x.case.kind == "world model" and x.case.arm == names.TOLD)
    path = tiny / "cells" / told.cell / CHECKPOINT
    model = load_model(path)
    assert isinstance(model, MixtureModel)
    assert model.hparams["told"]
    assert len(model.hparams["exponents"]) == 8
    with pytest.raises(ValueError, match="several laws; ask it by benchmarks run worlds"):
        Checkpoint.load(path)


@pytest.mark.full
def test_its_models_can_be_kept_and_asked_again(tiny, tmp_path, capsys):
    kept = tmp_path / "kept"
    kept.mkdir()
    for path in tiny.glob("r*.json*"):
        shutil.copy(path, kept)
    main(["export", str(tiny), "--out", str(kept / "models")])
    said = capsys.readouterr().out
    models = sorted(path.name for path in (kept / "models").iterdir())
    assert {"softmax-mixture-world-model-0", "softmax-told-the-law-world-model-0"} <= set(models)
    assert "next: load it as" in said
    assert "README.md says" in said
    words = ["run", "worlds", "--preset", "tiny", *FLAGS, "--n-read", "40", "--reuse", str(kept)]
    main([*words, "--out", str(tmp_path / "again"), "--dry-run"])
    plan = capsys.readouterr().out
    assert "worlds, worlds" in plan.partition("to compute")[2]
    assert "worlds, world model" not in plan.partition("to compute")[2], "nothing is trained again"
    assert any(name.startswith("softmax-one-world-single-") for name in models)
    for name in models:
        assert isinstance(load_model(kept / "models" / name), MixtureModel)


@pytest.mark.full
def test_the_report_has_the_figure(tiny):
    main(["report", str(tiny)])
    assert (tiny / "figures/worlds.png").is_file()
    report = (tiny / "report.md").read_text()
    assert "Law inferred in context: S: softened" in report
    assert TITLE in report
    assert "a past of r^-0.5 that ends in the same state" in report
    assert "softmax, told the law, takes of the exponent" in report
