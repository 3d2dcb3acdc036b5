"""Kept weights in a later run: the numbers of the original checkpoints, and no training again.

A run is kept as its lines and exported models. A run of other settings takes from it, and is
compared with the same run that takes the cells with their checkpoints.
"""

import json
import shutil

import pytest
import torch

from benchmarks import training
from benchmarks.__main__ import main
from benchmarks.newton.cells import world_model
from benchmarks.newton.export import export_models
from benchmarks.newton.newton import STUDY
from benchmarks.newton.restore import MODELS, restore
from benchmarks.newton.sentences import BACKBONE, mixed_backbones
from orbits.runs import folder, reuse
from orbits.runs.cell import CELLS, ORIGIN, RECORD
from orbits.runs.study import all_cells
from tests.benchmarks.newton.small import settings
from worldmodel.models.checkpoint import CONFIG, WEIGHTS, read_checkpoint
from worldmodel.models.exported import PRECISION, read_config

TINY = {
    "engine": ("powerlaw",),
    "attention": ("softmax",),
    "baselines": (),
    "shifts": ("planet_lighter",),
    "n_test": 30,
    "pretrain_steps": 20,
    "finetune_steps": 10,
}
FLAGS = (
    *("run", "newton", "--preset", "tiny", "--executor", "here", "--engine", "powerlaw"),
    *("--attention", "softmax", "--baselines", ""),
    *("--n-test", "30", "--pretrain-steps", "20", "--finetune-steps", "10"),
)
ELSEWHERE = ("--law", "power_1_5", "--elsewhere", "newton")
pytestmark = pytest.mark.full


def run(out, *arguments, shifts="planet_lighter"):
    main([*FLAGS, "--shifts", shifts, "--out", str(out), *arguments])
    return folder.load(out)[0]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    out = tmp_path_factory.mktemp("original") / "out"
    run(out)
    return out


@pytest.fixture(scope="module")
def kept(original):
    """Return what is kept of a run: its lines and its models."""
    kept = original.parent / "kept"
    kept.mkdir()
    for name in (folder.CLAIM, folder.LINES, f"{folder.LINES}.json"):
        shutil.copy(original / name, kept)
    main(["export", str(original), "--out", str(kept / MODELS)])
    return kept


@pytest.fixture
def copy(kept, tmp_path):
    return shutil.copytree(kept, tmp_path / "kept")


@pytest.fixture
def trained(monkeypatch):
    """Return the populations and laws of what is trained from here on, in their order."""
    done, train = [], training.train

    def told(job, *arguments):
        done.append((job["data"]["population"], (job["data"]["protocol_args"] or {}).get("law")))
        return train(job, *arguments)

    monkeypatch.setattr(training, "train", told)
    return done


def measured(results):
    return {x.cell: (x.case, x.metrics, x.details) for x in results}


def by_arm(results, kind):
    return {(x.case.arm, x.case.get("labels")): x for x in results if x.case.kind == kind}


def test_a_further_label_count_starts_from_kept_world_models(original, kept, tmp_path, trained):
    more = ("--labels", "30,unlimited")
    with_checkpoints = run(tmp_path / "whole", *more, "--reuse", str(original))
    del trained[:]
    results = run(tmp_path / "out", *more, "--reuse", str(kept))
    assert measured(results) == measured(with_checkpoints)
    assert trained == [("force", None)] * 2, "a head and a model from scratch, on 30 labels"
    (world,) = by_arm(results, "world model").values()
    assert {path.name for path in (tmp_path / "out" / CELLS / world.cell).iterdir()} == {
        RECORD,
        training.CHECKPOINT,
    }
    ours, theirs = (
        read_checkpoint(out / CELLS / world.cell / training.CHECKPOINT)
        for out in (tmp_path / "out", original)
    )
    assert ours.keys() == {"hyper_parameters", "state_dict"}
    assert ours["hyper_parameters"] == theirs["hyper_parameters"]
    assert all(torch.equal(x, ours["state_dict"][n]) for n, x in theirs["state_dict"].items())
    heads = by_arm(results, "forces")
    new, taken = (heads["pretrained", x].manifest["inputs"] for x in (30, "unlimited"))
    assert new[BACKBONE + ORIGIN] == taken[BACKBONE]
    assert new[BACKBONE] != taken[BACKBONE], "it says which file was read"
    assert mixed_backbones(results) == []
    main(["export", str(tmp_path / "out"), "--out", str(tmp_path / "again")])
    for name in (WEIGHTS, CONFIG):
        again, before = (
            place / "softmax-world-model-0" / name for place in (tmp_path / "again", kept / MODELS)
        )
        assert again.read_bytes() == before.read_bytes(), "as if it had never been away"


def test_a_kept_head_is_asked_in_another_world(original, kept, tmp_path, trained):
    with_checkpoints = run(tmp_path / "whole", *ELSEWHERE, "--reuse", str(original), shifts="")
    assert trained.count(("pretrain", None)) == 0
    assert trained.count(("force", None)) == 1, "the head, which has another name there"
    del trained[:]
    results = run(tmp_path / "out", *ELSEWHERE, "--reuse", str(kept), shifts="")
    assert {law for _, law in trained} == {"power_1_5"}
    assert measured(results) == measured(with_checkpoints)
    rows = by_arm(results, "forces")
    home = by_arm(folder.load(kept)[0], "forces")
    assert rows["head, newton", "unlimited"].metrics == home["pretrained", "unlimited"].metrics
    assert rows["trained on newton", 0].value("r2_log") < 1
    made = export_models(tmp_path / "out", tmp_path / "models")
    assert sorted(path.name for path in made) == [
        "softmax-head-0",
        "softmax-world-model-0",
        "softmax-world-model-newton-0",
    ]


def test_another_shift_examines_a_kept_head(kept, tmp_path, trained):
    results = run(tmp_path / "out", "--reuse", str(kept), shifts="planet_heavier")
    assert trained == [("force", None)], "the model from scratch, which is not exported"
    exams = by_arm(results, "exam")
    assert exams["pretrained", "unlimited"].ok
    assert (
        f"head/{training.CHECKPOINT}{ORIGIN}" in exams["pretrained", "unlimited"].manifest["inputs"]
    )


def cells(**changes):
    return all_cells(STUDY, settings("tiny", **TINY, **changes))


def plan(source, out, **changes):
    return reuse.plan(cells(**changes), [source], out, STUDY.restore)


def test_lines_alone_do_where_no_file_is_read(copy, tmp_path):
    shutil.rmtree(copy / MODELS)
    assert len(plan(copy, tmp_path / "out").taken) == len(cells())
    assert not list(tmp_path.glob(f"out/{CELLS}/*/{training.CHECKPOINT}"))


def test_predictions_are_no_part_of_a_kept_model(copy, tmp_path):
    plan(copy, tmp_path / "out", law_seeds=2).carry_out()
    records = {
        cell.case.arm: cell.record(tmp_path / "out")
        for cell in cells(law_seeds=2)
        if cell.case.kind in ("forces", "world model") and cell.case.variant == "softmax"
    }
    assert records["pretrained"] is None, "a further search reads them, so it is trained again"
    assert records["pretraining"]["serves"] == ["head", "pretrained"]


def test_a_run_goes_on_with_what_was_restored(copy, tmp_path):
    out, changes = tmp_path / "out", {"labels": (30, "unlimited")}
    plan(copy, out, **changes).carry_out()
    shutil.rmtree(copy / MODELS)
    again = plan(copy, out, **changes)
    assert not again.taken
    assert not again.stale
    other = plan(out, tmp_path / "other", **changes)
    assert any(x.args[0].function is world_model for x in other.taken), "copied with its checkpoint"


def test_a_line_that_was_taken_gets_its_file_when_that_is_read(copy, tmp_path):
    out = tmp_path / "out"
    shutil.move(copy / MODELS, tmp_path / MODELS)
    plan(copy, out).carry_out()
    shutil.move(tmp_path / MODELS, copy / MODELS)
    (world,) = (cell for cell in cells() if cell.function is world_model)
    assert not (world.folder(out) / training.CHECKPOINT).exists()
    plan(copy, out, labels=(30, "unlimited")).carry_out()
    assert (world.folder(out) / training.CHECKPOINT).is_file()


def edit(model, change):
    """Change a configuration that has no checksum of the settings, as older exports have none."""
    config = json.loads((model / CONFIG).read_text())
    del config["settings_sha256"]
    change(config)
    (model / CONFIG).write_text(json.dumps(config))


def lengthen(model):
    with (model / WEIGHTS).open("ab") as file:
        file.write(b"\0")


def rename(model, name, value):
    edit(model, lambda config: config["provenance"].update({name: value}))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lengthen, "model.safetensors: damaged, its sha256 is not that of config.json"),
        (lambda m: (m / WEIGHTS).unlink(), "no model.safetensors in it"),
        (lambda m: (m / CONFIG).write_text("{"), "not the settings of an exported model"),
        (lambda m: (m / CONFIG).unlink(), "no config.json in it"),
        (lambda m: edit(m, lambda c: c.update(schema=1)), "schema must be 2, got 1"),
        (lambda m: edit(m, lambda c: c.pop("sha256")), "no sha256"),
        (lambda m: edit(m, lambda c: c["settings"].update(n_layer=3)), "weights are of 2 blocks"),
        (lambda m: edit(m, lambda c: c["settings"].update(attention="l1")), "attention is 'l1'"),
        (lambda m: edit(m, lambda c: c["settings"].update(lr=0.5)), "lr is 0.5, that of its cell"),
        (lambda m: edit(m, lambda c: c["settings"].pop("attention")), "name no attention"),
        (
            lambda m: edit(m, lambda c: c["settings"].pop("input")),
            "input is None",
        ),
        (lambda m: rename(m, "case", {}), "its case is not that of its cell"),
        (lambda m: shutil.copytree(m, m.with_name("twin")), "of the same cell as"),
    ],
)
def test_a_model_that_is_damaged_or_of_another_cell_is_refused_before_any_work(
    copy, tmp_path, refusal, spoil, message
):
    spoil(copy / MODELS / "softmax-world-model-0")
    again = ("--labels", "30,unlimited", "--reuse", str(copy))
    assert message in refusal(run, tmp_path / "out", *again, alone=False)
    assert not (tmp_path / "out" / folder.CLAIM).exists()


def test_a_model_of_no_cell_of_the_run_is_left_alone(copy, tmp_path):
    for model in (copy / MODELS).iterdir():
        rename(model, "cell", f"no cell, {model.name}")
    plan(copy, tmp_path / "out", labels=(30, "unlimited")).carry_out()
    assert not list((tmp_path / "out").glob(f"{CELLS}/*/{training.CHECKPOINT}"))


def test_only_what_was_trained_is_restored(kept):
    results = {x.cell: [x] for x in folder.load(kept)[0]}
    restored = {
        (cell.case.kind, cell.case.arm)
        for cell in cells()
        if restore(cell, reuse.Kept(kept, results))
    }
    assert restored == {("world model", "pretraining"), ("forces", "pretrained")}


def test_a_rounded_head_is_kept_to_load_and_no_run_starts_from_it(original, kept, tmp_path):
    copied = tmp_path / "kept"
    shutil.copytree(kept, copied, ignore=shutil.ignore_patterns(MODELS))
    export_models(original, copied / MODELS, half=True)
    results = {x.cell: [x] for x in folder.load(copied)[0]}
    restored = {x.case.kind for x in cells() if restore(x, reuse.Kept(copied, results))}
    assert restored == {"world model"}
    assert {PRECISION in read_config(x) for x in (copied / MODELS).glob("*-head-*")} == {True}


def test_an_export_takes_what_was_chosen_and_no_more_than_the_limit(
    original, tmp_path, capsys, refusal
):
    out = tmp_path / "models"

    def export(*arguments):
        main(["export", str(original), "--out", str(out), *arguments])

    for flags, message in [
        (["--attention", "lssar"], "--attention lssar: no such model; choose from softmax"),
        (["--seeds", "0,1"], "--seeds 1: no such model; choose from 0"),
        (["--seeds", "0,x"], "must be numbers such as 0,1,2, got '0,x'"),
        (["--limit-mb", "0.1"], "2 models take 0.3 MB, more than --limit-mb 0.1; choose fewer by"),
        (["--limit-mb", "nan"], "--limit-mb must be more than 0, got nan"),
    ]:
        assert message in refusal(export, *flags)
        assert not out.exists()
    export("--attention", "softmax", "--seeds", "0")
    size = sum(file.stat().st_size for file in out.glob("*/*"))
    assert f"2 models, {size / 1e6:.1f} MB" in capsys.readouterr().out
    for model in list(out.iterdir()):
        model.rename(model.with_name(f"earlier-{model.name}"))
    with pytest.raises(ValueError, match=r"beside 0\.3 MB in"):
        export_models(original, out, limit_mb=1.5 * size / 1e6)


def test_the_last_byte_that_the_limit_allows_is_written(original, tmp_path):
    made = export_models(original, tmp_path / "all")
    size = sum(file.stat().st_size for model in made for file in model.iterdir())
    with pytest.raises(ValueError, match="more than --limit-mb"):
        export_models(original, tmp_path / "less", limit_mb=(size - 1) / 1e6)
    assert len(export_models(original, tmp_path / "same", limit_mb=size / 1e6)) == len(made)
