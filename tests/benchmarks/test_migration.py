"""Results of schema 1 as results of schema 2: nothing that was measured is lost or changed."""

from benchmarks.__main__ import main
from orbits.runs import artefact, folder
from orbits.runs.result import Metric

MANIFEST = {"git": {"commit": "0123456789"}, "device": "cpu", "config": {}}
ROW = {"protocol": "identifiable", "model": "lssar p=15", "arm": "scratch", "labels": 9, "seed": 2}
LINE = {
    "schema": 1, "cell": "a", "status": "ok", "error": None, "cpu_s": 3.0, "task": "newton",
    "row": ROW, "seed": 2, "engine": None, "metrics": {}, "manifest": MANIFEST,
}  # fmt: skip
NEWTON = {"benchmark": "newton", "protocol": "identifiable", "preset": {"name": "tiny", "lr": 1.0}}
FORCES = {
    "r2_log": 0.5, "cosine": None, "n_points": 12, "n_sequences": 3, "n_boot": 5, "alike": ["mond"],
    "constant": [2.0, 1.0, 3.0], "exponents": {"m1": [1.0, 0.9, 1.1], "r": None},
    "law_exponents": {"r": -2.0}, "distance_exponents": {"within": [-1.0, -2.0, 0.0]},
}  # fmt: skip


def old_folder(place, lines, config=None, claim="run.json"):
    place.mkdir()
    artefact.save_record(place / claim, {"config": config or NEWTON, "manifest": MANIFEST})
    artefact.save_lines(place / "results.jsonl", lines, MANIFEST)
    (place / "figures").mkdir()
    (place / "figures" / "kept.png").touch()
    return place


def migrate(tmp_path, *lines, **how):
    old, new = old_folder(tmp_path / "old", lines, **how), tmp_path / "new"
    main(["migrate", str(old), "--out", str(new)])
    assert (new / "figures" / "kept.png").exists()
    return folder.load(new)


def values(result):
    return {name: metric.interval or metric.value for name, metric in result.metrics.items()}


def test_forces_have_flat_names_and_units_and_keep_counts_apart(tmp_path):
    (result,), manifest = migrate(tmp_path, {**LINE, "kind": "predictor", "metrics": FORCES})
    case = result.case
    assert (case.study, case.kind, case.law) == ("newton", "forces", "newton")
    assert (case.variant, case.arm, case.seed) == ("lssar p=15", "scratch", 2)
    assert (case.protocol, case.setting) == ("identifiable", {"labels": 9})
    assert values(result) == {
        "r2_log": 0.5, "constant": (2.0, 1.0, 3.0), "exponent_m1": (1.0, 0.9, 1.1),
        "law_exponent_r": -2.0, "exponent_r_within": (-1.0, -2.0, 0.0),
    }  # fmt: skip
    assert result.metrics["r2_log"].direction == "higher"
    assert result.details == {"alike": ["mond"], "n_points": 12, "n_sequences": 3, "n_boot": 5}
    assert (result.cell, result.cpu_s, result.manifest) == ("a", 3.0, MANIFEST)
    config = manifest["config"]
    assert (config["study"], config["preset"], config["lr"]) == ("newton", "tiny", 1.0)


def test_a_search_keeps_its_engine_its_seed_and_its_verdict(tmp_path):
    metrics = {"complexity": 7, "law": True, "verdict": "law", "exponents": None, "n_points": 4}
    line = {**LINE, "kind": "law", "engine": "operon@1", "seed": 5, "expression": "r"}
    (result,), _ = migrate(tmp_path, {**line, "metrics": metrics, "front": []})
    assert (result.case.kind, result.case.seed) == ("search", 2)
    assert result.case.setting == {"labels": 9, "engine": "operon@1", "search": 5}
    assert values(result) == {"complexity": 7, "n_points": 4}
    assert result.details == {"law": True, "verdict": "law", "expression": "r", "front": []}


def test_references_of_the_next_point_are_results_of_their_own(tmp_path):
    row = {**ROW, "model": "references", "arm": "control", "seed": None}
    metrics = {"orbit fit: nll": [1.0, 0.5, 1.5], "copy: nll": [2.0, 1.5, 2.5]}
    line = {**LINE, "kind": "next point", "row": row, "metrics": metrics}
    found, _ = migrate(tmp_path, line)
    assert {x.case.variant: values(x)["nll"] for x in found} == {
        "orbit fit": (1.0, 0.5, 1.5), "copy": (2.0, 1.5, 2.5),
    }  # fmt: skip
    assert [x.cpu_s for x in found] == [3.0, 0.0], "the time of the line counts once"


def test_failures_and_renamed_controls_stay(tmp_path):
    row = {**ROW, "model": "observer, past, by newton", "arm": "control", "seed": None}
    line = {**LINE, "kind": "predictor", "row": row, "status": "failed", "error": "no"}
    (result,), _ = migrate(tmp_path, line)
    assert (result.status, result.error) == ("failed", "no")
    assert result.case.variant == "Newtonian observer, averaged over the past"


def test_measurements_keep_their_errors_and_trainings_belong_to_all_studies(tmp_path):
    row = {"model": "softmax", "seed": 0, "context": 64, "ntk": False}
    loss = {"value": 2.0, "n": 8, "stderr": 0.1, "direction": "lower"}
    measured = {**LINE, "kind": "measurement", "row": row, "metrics": {"loss@1x": loss}}
    trained = {**LINE, "kind": "training", "task": "language model", "metrics": {"val_loss": 1.5}}
    trained["row"] = {"model": "softmax", "seed": 0}
    config = {"benchmark": "extrapolation", "preset": "small", "attentions": ["softmax"]}
    (one, two), manifest = migrate(tmp_path, measured, trained, config=config)
    assert one.case.setting == {"context": 64, "ntk": False}
    expected = Metric(2.0, n=8, stderr=0.1, unit="nats per token", direction="lower")
    assert one.metrics == {"loss@1x": expected}
    assert (one.case.study, two.case.study) == ("extrapolation", "language model")
    assert one.case.law is two.case.law is None
    assert manifest["config"]["attention"] == ["softmax"]


def test_probes_keep_what_tells_rows_apart_and_count_their_time_once(tmp_path):
    row = {
        "model": "softmax", "arm": "pretrained", "labels": None, "law": "newton", "seed": 0,
        "protocol": "identifiable", "size": "small", "steps": 30, "trained_on": "newton",
    }  # fmt: skip
    line = {
        "schema": 1, "kind": "probe", "probe": "causal", "row": row, "subject": row, "cpu_s": 4.0,
        "setting": {"steps": 7}, "curves": {}, "files": {}, "manifest": MANIFEST,
        "metrics": {"slope": [1.0, 0.5, 1.5]},
    }  # fmt: skip
    other = {**line, "setting": {"steps": 8}}
    config = {"checkpoints": ["a"], "probes": ["causal"], "settings": {"labels": 10}}
    (one, two), _ = migrate(tmp_path, line, other, config=config, claim="probe.json")
    assert (one.case.study, one.case.kind) == ("probe", "causal")
    assert (one.case.setting["trained_steps"], one.case.setting["steps"]) == (30, 7)
    assert values(one) == {"slope": (1.0, 0.5, 1.5)}
    assert one.details["checkpoint"] == row
    assert (one.cpu_s, two.cpu_s) == (4.0, 0.0)


def test_what_cannot_be_converted_is_one_line_and_writes_nothing(tmp_path, refusal):
    good = old_folder(tmp_path / "good", [{**LINE, "kind": "predictor", "metrics": FORCES}])
    bad = old_folder(tmp_path / "bad", [{**LINE, "kind": "gossip"}])
    new = tmp_path / "new"
    (tmp_path / "there").mkdir()
    main(["migrate", str(good), "--out", str(tmp_path / "done")])
    for source, target, message in (
        (bad, new, "results.jsonl, line 1: not a line of schema 1"),
        (tmp_path / "done", new, "holds results of schema 2 already"),
        (tmp_path / "nowhere", new, "is not a results folder"),
        (good, tmp_path / "there", "exists; choose another --out"),
    ):
        assert message in refusal(main, ["migrate", str(source), "--out", str(target)])
    assert not new.exists()


def test_a_metric_that_its_study_does_not_know_is_refused(tmp_path, refusal):
    line = {**LINE, "kind": "predictor", "metrics": {"gossip": 1.0}}
    old = old_folder(tmp_path / "old", [line])
    said = refusal(main, ["migrate", str(old), "--out", str(tmp_path / "new")])
    assert "unknown metric 'gossip' of newton" in said
    assert not (tmp_path / "new").exists()
