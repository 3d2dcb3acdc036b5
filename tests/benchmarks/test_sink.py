"""The sink task: what its tables say of the papers' models."""

from statistics import fmean

import pytest

from benchmarks.tasks import sink

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
