"""What the lines of the kernel benchmark say: ratios, a table and a figure."""

from __future__ import annotations

from collections import Counter
from typing import Any

from benchmarks.speed.lines import Row

FLOORS = {"cuda": ("sdpa flash", "sdpa cudnn"), "cpu": ("sdpa",)}
"""What softmax takes in PyTorch's own kernels, by device."""
OTHERS = ("eager", "flex", "compiled")
"""What else computes our variants."""


def bases(row: Row, rows: list[Row]) -> dict[str, Row]:
    """Return the rows that a row is divided by, by name, among those measured so far.

    These are the floors of its shape and mode, and for a peer our kernels' of its variant too.
    """
    same = ("length", "head_dim", "mode")
    found = {}
    for other in rows:
        if any(other[key] != row[key] for key in same):
            continue
        ours = other["peer"] == "triton" and other["variant"] == row["variant"]
        if other["peer"] in FLOORS[row["device"]] or (ours and row["peer"] in OTHERS):
            found[other["peer"].replace(" ", "_")] = other
    return found


def table(rows: list[Row]) -> str:
    """Return the measured rows with their ratios, and how many others there are and why.

    The columns ``x`` are ratios to a floor or to our kernels: of time, then of memory.
    """
    floors = FLOORS[rows[0]["device"]]
    over = {name: f"x {name.removeprefix('sdpa ')}" for name in (*floors, "triton")}
    titles = "".join(f"{title:>9s}" for title in over.values())
    text = [
        f"{'peer':11s}{'variant':9s}{'mode':9s}{'L':>6s}{'d':>5s}{'ms':>10s}{'20%..80%':>18s}"
        f"{titles}{'MiB':>9s}{titles}{'roofline':>10s}"
    ]
    for row in rows:
        place = (
            f"{row['peer']:11s}{row['variant']:9s}{row['mode']:9s}"
            f"{row['length']:6d}{row['head_dim']:5d}"
        )
        if row["status"].startswith("failed"):
            text.append(f"{place}  {row['status']}")
        if row["status"] != "measured":
            continue
        low, high = (1e3 * row[key] for key in ("seconds_20", "seconds_80"))
        seconds, memory = (
            "".join(_cell(row.get(prefix + name.replace(" ", "_"))) for name in over)
            for prefix in ("x_", "bytes_x_")
        )
        text.append(
            f"{place}{1e3 * row['seconds']:10.3f}{f'{low:.3f}..{high:.3f}':>18s}{seconds}"
            f"{row['bytes'] / 2**20:9.1f}{memory} {_cell(row.get('roofline'))}"
        )
    skipped = Counter(
        (row["peer"], row["status"]) for row in rows if row["status"].startswith("skipped")
    )
    text += [f"{peer:11s}{status} ({count} rows)" for (peer, status), count in skipped.items()]
    return "\n".join(text)


def draw(rows: list[Row]) -> Any:
    """Return a figure: time over SDPA by length, a panel per head dim, a line per variant."""
    from matplotlib.figure import Figure

    floor = FLOORS[rows[0]["device"]][0]
    times = f"x_{floor.replace(' ', '_')}"
    drawn = [x for x in rows if x["mode"] == "training" and x["peer"] != floor and times in x]
    dims = sorted({row["head_dim"] for row in drawn})
    figure = Figure(figsize=(4.2 * max(1, len(dims)), 3.4), layout="constrained")
    for axis, dim in zip(
        figure.subplots(1, max(1, len(dims)), squeeze=False)[0], dims, strict=False
    ):
        groups: dict[str, list[tuple[int, float]]] = {}
        for row in drawn:
            if row["head_dim"] == dim:
                name = f"{row['variant']}, {row['peer']}"
                groups.setdefault(name, []).append((row["length"], row[times]))
        for name, points in sorted(groups.items()):
            axis.plot(*zip(*sorted(points), strict=True), marker="o", label=name)
        axis.axhline(1, color="0.6", linewidth=1)
        axis.set(xscale="log", yscale="log", xlabel="sequence length", title=f"head dim {dim}")
        axis.set_ylabel(f"forward + backward, times {floor}")
        axis.legend(fontsize=6)
    return figure


def _cell(value: float | None) -> str:
    return f"{'-' if value is None else f'{value:.2f}':>9s}"
