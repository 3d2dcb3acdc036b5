"""The flagship with the published label leak: where it goes, and that every row says so."""

import dataclasses

import pytest

from benchmarks import newton, presets
from benchmarks.__main__ import main
from symreg import results


def leaking(protocol="paper", **changes):
    size = dataclasses.replace(presets.get("paper"), **changes)
    return newton.Options(protocol, size, label_leak=2)


def test_labels_leak_into_what_learns_from_labels_and_not_into_pretraining():
    honest, leaked = newton.cells(dataclasses.replace(leaking(), label_leak=0)), leaking()
    known = {c.key for c in honest}
    grid = newton.cells(leaked)
    assert len(grid) == len(honest)
    for cell in grid:
        sees_no_labels = cell.kind in ("pretrain", "next_point", "next_point_references")
        assert (cell.key in known) == sees_no_labels
        for part in ("data", "model"):
            if part in cell.config:
                leak = (cell.config[part]["protocol_args"] or {}).get("label_leak")
                assert leak == (None if sees_no_labels else 2)
    backbones = {c.needs["pretrained"].key for c in grid if "pretrained" in c.needs}
    assert backbones <= known


def test_a_leaked_row_says_so_and_shares_no_table_with_an_honest_one():
    def named(options):
        predictors = [c for c in newton.cells(options) if c.config["line_kind"] == "predictor"]
        return [c.config["row"] for c in predictors]

    rows = named(leaking())
    assert {row["protocol"] for row in rows} == {"paper, 2 leaked labels per test sequence"}
    models = {row["model"] for row in rows if row["arm"] != "control"}
    assert models == {"softmax, leaked labels", "lssar p=15, leaked labels"}
    honest = named(dataclasses.replace(leaking(), label_leak=0))
    assert {row["protocol"] for row in honest} == {"paper"}


def test_a_leak_is_another_configuration_and_none_is_that_of_older_results(tmp_path):
    leaked = leaking()
    config = dataclasses.replace(leaked, label_leak=0).config()
    assert "label_leak" not in config
    results.claim(tmp_path, config, resume=False, overwrite=False)
    with pytest.raises(ValueError, match="differs in label_leak"):
        results.check(tmp_path, leaked.config(), resume=False, overwrite=False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": "identifiable", "images": True}, "add --no-images"),
        ({"labels": (300, "unlimited")}, "got unlimited"),
    ],
)
def test_labels_leak_neither_into_images_nor_into_unlimited_ones(changes, message):
    with pytest.raises(ValueError, match=message):
        leaking(**changes)


def test_labels_leak_two_by_two_and_in_one_world():
    with pytest.raises(ValueError, match="elsewhere does not go with label_leak"):
        dataclasses.replace(leaking(), elsewhere=("harmonic",))
    with pytest.raises(ValueError, match="label_leak must be 0 or 2, got 3"):
        dataclasses.replace(leaking(), label_leak=3)


def test_a_run_with_leaked_labels_says_so_wherever_it_is_shown(tmp_path, capsys):
    out = tmp_path / "out"
    asked = ("--jobs", "1", "--label-leak", "2", "--labels", "30", "--attention", "softmax")
    main(["run", "newton", "--preset", "tiny", "--engines", "powerlaw", "--out", str(out), *asked])
    lines, manifest = results.load(out)
    assert all(line["status"] == "ok" for line in lines)
    assert manifest["config"]["label_leak"] == 2
    capsys.readouterr()
    main(["report", str(out)])
    table, page = (out / "leaderboard.md").read_text(), (out / "report.html").read_text()
    for view in (capsys.readouterr().out, table, page):
        assert "2 labels of every scored sequence were learnt from" in view
        assert "softmax, leaked labels, pretrained, 30 labels (1 seed)" in view
        assert "softmax, pretrained" not in view
    assert "### newton, protocol identifiable, 2 leaked labels per test sequence" in table
    assert "### newton, protocol identifiable\n" not in table
