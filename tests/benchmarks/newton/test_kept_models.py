"""Kept models: they load in one line, and a head gives the numbers of its kept line."""

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.newton import cells
from benchmarks.training_options import Training
from orbits.runs import folder
from symreg.exponents import prediction_metrics
from worldmodel.data.orbits import OrbitData
from worldmodel.models.checkpoint import CONFIG
from worldmodel.models.export import read_export
from worldmodel.models.exported import read_config
from worldmodel.models.load import load_model
from worldmodel.models.mixture import MixtureModel
from worldmodel.models.orbit import ForceModel, NextTokenModel

RUN = Path(__file__).parents[3] / "benchmarks/results/newton-exam"
MODELS = sorted(path.parent for path in RUN.parent.glob(f"*/models/*/{CONFIG}"))
MOST = 30e6
"""Bytes that the kept models of a run may take in all."""


def test_they_are_small():
    assert MODELS
    for run in {model.parent for model in MODELS}:
        assert sum(file.stat().st_size for file in run.glob("*/*")) <= MOST, run


def test_they_are_intact_and_of_the_kept_lines():
    known = {run: folder.load(run)[0] for run in {path.parents[1] for path in MODELS}}
    for path in MODELS:
        lines = {line.cell: line.case for line in known[path.parents[1]]}
        inputs = [line.manifest["inputs"] for line in known[path.parents[1]]]
        checkpoints = {digest for each in inputs for digest in each.values()}
        provenance = read_config(path)["provenance"]
        assert provenance["case"] == lines[provenance["cell"]].to_json()
        assert provenance["checkpoint"] in checkpoints, "another line names it as what it read"
        read_export(path)


def of_each_kind():
    """Return one kept model of each settings; of the others the weights alone differ."""
    return list(
        {
            json.dumps(read_config(path)["settings"], sort_keys=True): path for path in MODELS
        }.values()
    )


@pytest.mark.full
@pytest.mark.parametrize("path", of_each_kind(), ids=lambda path: path.name)
def test_every_kind_loads(path):
    usual = ForceModel if "-head-" in path.name else NextTokenModel
    kind = MixtureModel if path.parents[1].name.startswith("worlds-") else usual
    assert type(load_model(path)) is kind


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_layer": 3}, "n_layer is 3, its weights are of 2 blocks"),
        ({"head_dim": 16}, "has shape"),
        ({"protocol": "paper"}, "embedding.time_step.weight has shape"),
        ({"protocol": "papr"}, "choose from identifiable"),
        ({"protocol_args": {"n_bins": 64}}, "not a checkpoint of a NextTokenModel"),
        ({"input": "tokens"}, "not a checkpoint of a NextTokenModel"),
        ({"attention": "softmx"}, "unknown attention 'softmx'"),
    ],
    ids=str,
)
def test_weights_of_other_settings_are_refused_in_one_line(tmp_path, changed, message):
    model = _changed(tmp_path, "softmax-world-model-0", changed, checksum=False)
    with pytest.raises(ValueError, match=message) as refused:
        load_model(model)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("lssar-p-15-head-0", {"attention_args": {"p": 3.0}}),
        ("softmax-head-0", {"n_head": 4, "head_dim": 16}),
        ("softmax-head-0", {"norm": "rms"}),
    ],
)
def test_settings_that_the_weights_fit_but_were_not_trained_with_are_refused(
    tmp_path, name, changed
):
    with pytest.raises(ValueError, match="not those that the weights were trained with"):
        load_model(_changed(tmp_path, name, changed))


def _changed(tmp_path, name, settings, checksum=True):
    """Return a copy of a kept model with other settings, without their checksum if it is older."""
    model = shutil.copytree(RUN / "models" / name, tmp_path / "model")
    config = json.loads((model / CONFIG).read_text())
    config["settings"] |= settings
    if not checksum:
        del config["settings_sha256"]
    (model / CONFIG).write_text(json.dumps(config))
    return model


@pytest.mark.full
def test_a_head_gives_the_numbers_of_its_line():
    path = next(path for path in MODELS if "-head-" in path.name)
    cell = json.loads((path / CONFIG).read_text())["provenance"]["cell"]
    (line,) = [x for x in folder.load(RUN)[0] if x.cell == cell and x.case.kind == "forces"]
    data = OrbitData(protocol="identifiable", population="force", n_test=1000)
    columns = cells._predictor(load_model(path), Training())(data)
    found = prediction_metrics(columns["force"].numpy(), columns["force_predicted"].numpy())
    assert found["r2_log"] == pytest.approx(line.value("r2_log"), abs=1e-4)
    assert found["rms_log_error"] == pytest.approx(line.value("rms_log_error"), rel=1e-3)
