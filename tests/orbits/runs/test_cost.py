"""The cost that a dry run states: proportional to steps, unknown where nothing was measured."""

import dataclasses
import json

import pytest
import yaml

from orbits.runs import cost, flags, folder, study
from orbits.runs.cell import Cell, Outcome
from orbits.runs.executors import Execution
from orbits.runs.result import Case
from tests.orbits.runs.tossing import STUDY

ROWS = [
    {"of": "s/train", "sizes": {"steps": 100, "width": 8}, "seconds": {"a": 60.0, "b": 120.0}},
    {"of": "s/train", "sizes": {"steps": 100, "width": 8, "old": 1}, "seconds": {"a": 600.0}},
    {"of": "s/gpt", "sizes": {"n_layer": 2, "n_head": 2, "head_dim": 4}, "seconds": {"a": 2.0}},
    {"of": "s/read", "sizes": {"n": 3}, "seconds": {"a": 3.0}},
]


def train(**_):
    return Outcome()


def cell(variant="a", kind="train", **arguments):
    arguments = arguments or {"job": {"steps": 100, "width": 8, "lr": 0.1, "seed": 3}}
    return Cell(train, Case("s", kind, variant), arguments)


@pytest.fixture(autouse=True)
def _table(tmp_path, monkeypatch):
    path = tmp_path / "seconds.yaml"
    path.write_text(yaml.safe_dump(ROWS))
    monkeypatch.setattr(cost, "TABLE", path)
    cost._table.cache_clear()
    yield
    cost._table.cache_clear()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (cell(), cost.Estimate(60.0, True)),
        (cell(steps=250, width=8, seeds=[0, 1]), cost.Estimate(150.0, True)),
        (cell("b", steps=50, width=8), cost.Estimate(60.0, True)),
        (cell("c"), cost.Estimate(120.0, False)),
        (cell(steps=200, width=16), cost.Estimate(120.0, True, same_size=False)),
        (cell(width=8), None),
        (cell(kind="search", steps=1), None),
        (cell(kind="gpt", n_layer=4, n_head=3, head_dim=8), cost.Estimate(36.0, True, False)),
        (cell(kind="gpt", n_layer=4), cost.Estimate(2.0, True, same_size=False)),
        (cell(kind="read", n=[1, 2, 3]), cost.Estimate(3.0, True)),
        (cell(kind="read", n=[1, 2]), cost.Estimate(3.0, True, same_size=False)),
    ],
)
def test_a_cell_costs_what_its_like_took(asked, expected):
    assert cost.of(asked) == expected


def test_a_summary_says_what_is_unknown_and_what_is_not_counted():
    left = [cell(), cell("b"), cell("c"), cell(kind="search", steps=1)]
    text = cost.summary(left, [*left, cell(kind="read", n=[1, 2, 3])])
    assert "to compute: 4 cells; finished or reused: 1" in text
    assert "5.0 CPU minutes (1 *)\n" in text
    assert "5.0 CPU minutes (1 *) and unknown: 1 cell of a kind" in text
    assert "not measured" in text
    assert "~" not in text
    assert "1.0 CPU minutes (1 ~)" in cost.summary([cell(steps=100, width=9)], [])
    assert "2,000,000 CPU minutes, 3.8 years" in cost.summary(
        [cell(steps=200_000_000, width=8)], []
    )
    assert "CPU minutes" not in cost.summary(left[3:], left[3:])


def test_the_table_is_made_of_results(tmp_path):
    out = tmp_path / "out"
    results = study.run(STUDY, STUDY.settings("small", seeds=[0, 1, 2]), out, Execution("here"))
    timed = [dataclasses.replace(x, cpu_s=float(n)) for n, x in enumerate(results, start=1)]
    gpu = dataclasses.replace(timed[0], cell="0" * 16, cpu_s=99.0)
    gpu.manifest["device"] = "cuda: NVIDIA H200"
    rows = cost.calibrate([[*timed[1:], gpu], timed[1:3]])  # the second took cells of the first
    assert [row["of"] for row in rows] == ["tossing/toss"]
    assert rows[0]["seconds"] == {"penny": 2.5, "dime": 5.0}, "medians of 2, 3 and of 4, 5, 6"
    assert rows[0]["sizes"] == {"tosses": 20, "fair": True}


def test_a_table_gets_the_kinds_sizes_and_variants_that_it_lacks():
    known = [
        {"of": "a/b", "sizes": {"n": 1, "m": 2}, "seconds": {"x": 1.0, "z": 2.0}},
        {"of": "b/b", "sizes": {"n": 1}, "seconds": {"x": 3.0}},
    ]
    again = {"of": "a/b", "sizes": {"m": 2, "n": 1}, "seconds": {"x": 9.0, "y": 4.0}}
    other = {"of": "a/b", "sizes": {"m": 9}, "seconds": {"x": 5.0}}
    both = {**known[0], "seconds": {"x": 1.0, "y": 4.0, "z": 2.0}}
    assert cost.added([again, other], known) == [both, other, known[1]]


def test_a_dry_run_counts_finished_cells_as_nothing(tmp_path, capsys):
    def dry(*arguments):
        arguments = ("--preset", "tiny", "--dry-run", *arguments)
        assert flags.execute(STUDY, flags.parse_study(STUDY, arguments, "run tossing")) is None
        return capsys.readouterr().out

    out = tmp_path / "out"
    assert "to compute: 2 cells; finished or reused: 0" in dry("--out", str(out))
    assert not out.exists()
    study.run(STUDY, STUDY.settings("tiny"), out, Execution("here"), preset="tiny")
    before = (out / folder.CLAIM).read_bytes()
    assert "to compute: 0 cells; finished or reused: 2" in dry("--out", str(out))
    assert "to compute: 2 cells; finished" in dry("--out", str(out), "--overwrite")
    elsewhere = ("--out", str(tmp_path / "new"), "--reuse", str(out))
    assert "to compute: 0 cells; finished or reused: 2" in dry(*elsewhere)
    assert not (tmp_path / "new").exists()
    assert (out / folder.CLAIM).read_bytes() == before
    with pytest.raises(ValueError, match=r"--reuse .*missing: no results"):
        dry("--reuse", str(tmp_path / "missing"))


def test_sizes_are_numbers_that_count():
    arguments = {"a": {"n": 3, "lr": 0.1, "dts": [1, 2]}, "engine": "x", "law": "y", "on": True}
    assert cost.sizes(json.loads(json.dumps(arguments))) == {
        "n": 3, "dts": 2, "engine": "x", "on": True,
    }  # fmt: skip
