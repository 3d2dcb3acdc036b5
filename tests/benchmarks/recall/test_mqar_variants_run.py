"""A whole run of the variants of recall at a tiny size."""

import pytest

from benchmarks.__main__ import main


@pytest.mark.full
def test_each_kind_has_its_rows_and_figure(tmp_path, capsys):
    out = tmp_path / "out"
    sizes = ["--steps", "4", "--val-steps", "2", "--n-test", "8", "--n-val", "8"]
    run = ["run", "mqar_variants", "--preset", "tiny", "--executor", "here"]
    main([*run, "--out", str(out), *sizes])
    capsys.readouterr()
    main(["report", str(out), "--full"])
    said = capsys.readouterr().out
    for kind in ("repeated", "forgetting", "compositional"):
        assert f"Right answers, {kind} recall of 4 pairs" in said
        assert (out / "figures" / f"{kind}.png").is_file()
