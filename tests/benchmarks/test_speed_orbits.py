import json

import pytest
import torch

from benchmarks.speed import orbits as speed


def test_a_table_and_json_lines_with_what_is_missing_skipped(tmp_path, monkeypatch, capsys):
    def needs_a_package_that_is_not_there():
        raise AssertionError("must not be loaded")

    missing = speed.Contestant(
        "warp", "bends space", "no-such-package", needs_a_package_that_is_not_there, 1
    )
    ours = [c for c in speed.CONTESTANTS if c.package == "orrery"]
    monkeypatch.setattr(speed, "CONTESTANTS", (*ours, missing))
    out = tmp_path / "results" / "orbits.jsonl"
    speed.main(["--seconds", "0.05", "--out", str(out)])
    printed = capsys.readouterr().out
    assert "skipped: no-such-package is not installed" in printed
    assert "memset" in printed
    rows = {row["name"]: row for row in map(json.loads, out.read_text().splitlines())}
    assert set(rows) == {"compiled", "numpy", "gpu", "warp"}
    if not torch.cuda.is_available():
        assert rows["gpu"]["status"] == "skipped: needs a CUDA device"
    for name in ("compiled", "numpy"):
        row = rows[name]
        assert row["differing_tokens"] == 0
        assert row["compared_tokens"] == speed.COMPARED * 1000 * 2
        assert row["points_per_s"] == pytest.approx(999 * row["trajectories_per_s"])
        assert row["manifest"]["config"]["protocol"]["name"] == "fixed"
        assert row["trajectories_per_s"] > 0


@pytest.mark.parametrize(
    ("name", "package"), [("kepler.py", "kepler"), ("rebound", "rebound"), ("scipy", "scipy")]
)
def test_peers_make_the_same_tokens(name, package):
    pytest.importorskip(package)
    peer = next(c for c in speed.CONTESTANTS if c.name == name)
    reference = speed.PROTOCOL.batch(0, "train", [3])["tokens"]
    assert (peer.load()([3]) == reference).all()


@pytest.mark.parametrize("seconds", ["0", "-1", "soon"])
def test_bad_input_is_refused(seconds, capsys):
    with pytest.raises(SystemExit) as stop:
        speed.main(["--seconds", seconds])
    assert stop.value.code == 2
    assert seconds in capsys.readouterr().err
