"""Attention sinks: the numbers of uniform attention, and the papers' models beside ours."""

import dataclasses
from statistics import fmean

import pytest
import torch

from benchmarks.language import checkpoints, sink, sink_cells
from orbits.runs.result import Case, Metric, Result
from worldmodel.maps import LayerState
from worldmodel.models.text import TextModel

# Lazy Attention, Table 4a: norms of values of Qwen3-4B, the first position and the others.
NORMS = (
    0.4614, 4.1719, 2.6657, 3.6258, 2.6090, 4.3038, 4.4015, 4.7506, 4.5663, 3.6458, 4.3791, 4.5723,
    4.0587, 2.8356, 4.6806,
)  # fmt: skip
NATURAL = {"text": "natural", "mask_at": None}


def test_the_papers_models_stand_below_ours():
    metrics = {name: Metric(0.5, n=1) for name in sink.FIRST}
    setting = {"text": "story", "mask_at": None}
    result = Result(
        Case("sink", "measurement", "softmax", seed=0, setting=setting), metrics=metrics
    )
    (table,) = (t for t in sink.STUDY.tables([result]) if t.title == sink.FIRST_TITLE)
    ours, *papers = ([value.text for value in row] for row in table.rows)
    assert ours == ["softmax", "story", *["0.500"] * 8]
    assert [row[:2] for row in papers] == [
        [f"{model} (paper)", text]
        for model in ("Qwen3-4B", "BLOOM")
        for text in ("story", "repeated")
    ]
    found = dict(zip((column.heading for column in table.columns), papers[0], strict=True))
    assert float(found["norm_v"]) == pytest.approx(NORMS[0] / fmean(NORMS[1:]), abs=5e-4)
    assert all(0.99 < float(cell) < 1.01 for row in papers[1::2] for cell in row[2:])


def test_uniform_attention_gives_every_token_its_share(tmp_path, monkeypatch):
    """The rows after a token, and the share of uniform attention there, are counted alike."""
    length, place = 8, 3
    weights = torch.tril(torch.ones(length, length)) / torch.arange(1, length + 1)[:, None]
    state = LayerState(
        weights=weights.expand(2, 2, length, length),
        **{name: torch.randn(2, 2, length, 4) for name in ("query", "key", "value")},
        hidden=torch.randn(2, length, 8),
    )
    found = checkpoints.TextCheckpoint(tmp_path, {}, {"seq_len": length})
    windows = torch.zeros(2, length + 1, dtype=torch.int64)
    task = TextModel(n_layer=1, n_head=2, head_dim=4).eval()
    kind = checkpoints.TextCheckpoint
    gathering = state.weights.clone()
    gathering[:, 1] = torch.eye(length)[0]  # one head of two gives all to the first key
    states = [state, dataclasses.replace(state, weights=gathering)]
    monkeypatch.setattr("worldmodel.maps.layer_states", lambda task, tokens: iter(states))
    monkeypatch.setattr(kind, "read", lambda path: found)
    monkeypatch.setattr(kind, "load", lambda checkpoint: task)
    monkeypatch.setattr(kind, "held_out", lambda checkpoint, length, n: windows)
    outcome = sink_cells.measure_attention("natural", 2, place, tmp_path, tmp_path)
    values = {name: metric.value for name, metric in outcome.metrics.items()}
    share = 100 * fmean(1 / n for n in range(5, 9))
    assert values["uniform_received"] == pytest.approx(share)
    assert values["received"] == pytest.approx(0.75 * share)
    assert values["sink_head"] == pytest.approx(100)
    assert values["sink"] == pytest.approx((3 * values["uniform"] + 100) / 4), "of four heads"
    assert values["sink"] + values["density"] == pytest.approx(100)
    assert values["missing"] == pytest.approx(0, abs=1e-4)


def test_a_sink_of_one_head_is_told_beside_a_mean_without_one():
    """A mean over heads hides a head that gathers on the first token."""
    results = [
        Result(
            Case("sink", "measurement", "softmax", seed=seed, setting=NATURAL),
            metrics={
                "sink": Metric(0.5 + seed / 100, n=1),
                "sink_head": Metric(90.0 + seed, n=1),
                "uniform": Metric(1.33, n=1),
            },
        )
        for seed in range(3)
    ]
    (said,) = sink.STUDY.sentences(results)
    assert "on the first token (91.00% in one head), and uniform" in said


def test_a_mixer_without_weights_is_refused():
    settings = sink.STUDY.settings("tiny", attention=["softmax", "zeros"])
    with pytest.raises(ValueError, match="zeros is a linear mixer, which has no attention weights"):
        sink.STUDY.cells(settings)
