"""The generator beside its peers: rates, ratios, and what is not there."""

import pytest
import torch

from benchmarks.cost import generators, orbit_speed
from orbits.runs import study
from orbits.runs.cell import Skipped
from orbits.runs.result import Case, Metric, Result

STUDY = orbit_speed.STUDY


@pytest.mark.full
def test_generators_are_timed_in_turns_and_what_is_missing_is_skipped(tmp_path):
    results = study.run(STUDY, STUDY.settings("tiny"), tmp_path, STUDY.execution, preset="tiny")
    found = {result.case.variant: result for result in results}
    assert list(found) == ["compiled", "numpy", "gpu", "memset"]
    if not torch.cuda.is_available():
        assert (found["gpu"].status, found["gpu"].error) == ("skipped", "needs a CUDA device")
    for name in ("compiled", "numpy"):
        result = found[name]
        assert result.value("differing_tokens") == 0
        assert result.details["compared_tokens"] == generators.COMPARED * 1000 * 2
        rate = result.value("trajectories_per_s")
        assert result.value("points_per_s") == pytest.approx(999 * rate)
        assert result.manifest["protocol"]["name"] == "fixed"
        assert rate > 0
    assert found["compiled"].value("compiled_is") == 1
    assert found["numpy"].value("compiled_is") > 0
    assert "written by memset" in study.report(STUDY, tmp_path)


def test_a_package_that_is_not_there_is_no_failure(monkeypatch):
    def load():
        raise AssertionError("must not be loaded")

    missing = generators.Generator("bends space", "no-such-package", load, 1)
    monkeypatch.setitem(generators.GENERATORS, "warp", missing)
    with pytest.raises(Skipped, match="no-such-package is not installed"):
        generators.measure("warp", 0.1)


@pytest.mark.full
def test_two_generators_take_turns_by_the_time_that_they_took(monkeypatch):
    clock = iter(range(10**6))
    order = []

    def generator(name, batch):
        def generate(indices):
            order.append((name, list(indices)))
            return generators.PROTOCOL.tokens_batch(0, "train", indices)

        def now():  # every look at the clock is a second later, two of the peer's
            return (1 + (name == "peer")) * next(clock)

        return generators.Generator("", "orrery", lambda: generate, batch, now)

    monkeypatch.setitem(generators.GENERATORS, "compiled", generator("compiled", 3))
    monkeypatch.setitem(generators.GENERATORS, "peer", generator("peer", 1))
    found = generators.measure("peer", 4)
    assert order[0] == ("peer", list(range(generators.COMPARED)))
    assert [name for name, _ in order[1:]] == ["peer", *["compiled"] * 2, "peer", *["compiled"] * 2]
    assert [indices for name, indices in order[1:] if name == "peer"] == [[0], [1]]
    assert found.metrics["trajectories_per_s"] == 0.5
    assert found.metrics["compiled_is"] == 6
    assert found.details["trajectories"] == 2
    assert found.details["cpu_seconds"] == 4


def timed(name, rate, slower):
    metrics = {"trajectories_per_s": rate, "points_per_s": 999 * rate, "compiled_is": slower,
               "differing_tokens": 0}  # fmt: skip
    return Result(
        Case("orbit_speed", "timing", name),
        metrics={key: Metric(float(value)) for key, value in metrics.items()},
        details={"what": "", "package": "", "batch_rates": [rate / 2, rate, 2 * rate],
                 "compared_tokens": 12},
    )  # fmt: skip


def test_rates_are_compared_through_the_compiled_generator_beside_each():
    memory = Result(Case("orbit_speed", "timing", "memset"), metrics={"bytes_per_s": Metric(8e9)})
    # The machine was half as fast when the peer was timed.
    results = [timed("compiled", 1e5, 1), timed("numpy", 1e4, 10), timed("peer", 50, 1000), memory]
    table, _ = STUDY.tables(results)
    assert [[value.text for value in row[3:]] for row in table.rows] == [
        ["10", "1.0", "0/12"], ["1", "10.0", "0/12"], ["0.01", "1000.0", "0/12"]
    ]  # fmt: skip
    assert table.rows[1][1].detail == "[5000.0, 20000.0]"
    verdict, sentence = STUDY.sentences(results)
    assert "10.0 times as many as numpy, 1,000 times as many as peer" in verdict
    assert "8.0 GB/s" in sentence
    assert "0.40 GB/s, 20 times less" in sentence
    assert STUDY.sentences(results[1:]) == []


@pytest.mark.parametrize(
    ("name", "package"), [("kepler.py", "kepler"), ("rebound", "rebound"), ("scipy", "scipy")]
)
def test_peers_make_the_same_tokens(name, package):
    pytest.importorskip(package)
    peer = generators.GENERATORS[name]
    reference = generators.PROTOCOL.batch(0, "train", [3])["tokens"]
    assert (peer.load()([3]) == reference).all()


def test_rows_are_those_of_the_protocol():
    assert 1 + generators.PROTOCOL.n_points == orbit_speed.ROWS
    assert orbit_speed.GeneratorSettings().generators == tuple(generators.GENERATORS)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seconds": 0}, "seconds must be at least 0.001, got 0"),
        ({"seconds": -1}, "seconds must be at least 0.001, got -1"),
        ({"seconds": "soon"}, "soon"),
        ({"generators": ["warp"]}, "unknown generator 'warp'; choose from compiled, numpy"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        list(STUDY.cells(STUDY.settings("tiny", **changes)))
