"""The sink task: what its tables say of the papers' models."""

from statistics import fmean

import pytest
import torch

from benchmarks.tasks import sink
from worldmodel import attention_statistics
from worldmodel.attention_statistics import LayerState
from worldmodel.text_task import TextTask

# Lazy Attention, Table 4a: norms of values of Qwen3-4B, the first position and the others.
NORMS = (
    0.4614, 4.1719, 2.6657, 3.6258, 2.6090, 4.3038, 4.4015, 4.7506, 4.5663, 3.6458, 4.3791, 4.5723,
    4.0587, 2.8356, 4.6806,
)  # fmt: skip


def test_the_papers_models_stand_below_ours():
    measured = {name: {"value": 0.5, "n": 1} for name in sink.FIRST}
    row = {"model": "softmax", "text": "story", "mask_at": None, "seed": 0}
    line = {"kind": "measurement", "status": "ok", "row": row, "metrics": measured}
    (table,) = (t for t in sink.TASK.tables([line]) if t.title == sink.FIRST_TITLE)
    header, ours, *papers = table.cells
    assert ours == ["softmax", "story", *["0.500 (1 seed)"] * 8]
    assert [row[:2] for row in papers] == [
        [f"{model} (paper)", text]
        for model in ("Qwen3-4B", "BLOOM")
        for text in ("story", "repeated")
    ]
    found = dict(zip(header, papers[0], strict=True))
    assert float(found["norm_v"]) == pytest.approx(NORMS[0] / fmean(NORMS[1:]), abs=5e-4)
    assert all(0.99 < float(cell) < 1.01 for row in papers[1::2] for cell in row[2:])


def test_uniform_attention_gives_every_token_what_is_said_of_it(tmp_path, monkeypatch):
    """The rows after a token, and what uniform attention has there, are counted alike."""
    length, place = 8, 3
    weights = torch.tril(torch.ones(length, length)) / torch.arange(1, length + 1)[:, None]
    state = LayerState(
        weights=weights.expand(2, 2, length, length),
        **{name: torch.randn(2, 2, length, 4) for name in ("query", "key", "value")},
        hidden=torch.randn(2, length, 8),
    )
    task = TextTask(n_layer=1, n_head=2, head_dim=4).eval()
    model = sink.Model(tmp_path, {}, {"seq_len": length})
    windows = torch.zeros(2, length + 1, dtype=torch.int64)
    monkeypatch.setattr(attention_statistics, "layer_states", lambda task, tokens: [state, state])
    monkeypatch.setattr(sink.Model, "needed", lambda needs, config: model)
    monkeypatch.setattr(sink.Model, "load", lambda model: task)
    monkeypatch.setattr(sink.Model, "held_out", lambda model, length, n: windows)
    found = {}

    def line(model, task, config, metrics, other):
        found.update({name: measured.value for name, measured in metrics.items()})
        return {"manifest": {}}

    monkeypatch.setattr(sink.Model, "line", line)
    config = {"row": {"text": "natural", "mask_at": place}, "n_windows": 2}
    sink.TASK.attention(config, tmp_path, {}, lambda done, n: None)
    assert found["received"] == pytest.approx(100 * fmean(1 / n for n in range(5, 9)))
    assert found["uniform_received"] == pytest.approx(found["received"])
    assert found["sink"] == pytest.approx(found["uniform"])
    assert found["sink"] + found["density"] == pytest.approx(100)
    assert found["missing"] == pytest.approx(0, abs=1e-4)
