"""The report of a probe run: tables, figures and one self-contained page, from the lines alone."""

from __future__ import annotations

import base64
import itertools
import json
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orbits import artefacts, untrusted
from worldmodel import probes
from worldmodel.intervals import MINIMUM_SEEDS, over_seeds

Line = Mapping[str, Any]
OVER_SEEDS = "t, checkpoints"
TOLD_APART = ("trained_on", "size", "steps", "labels")
"""Of a row: columns where they differ."""
READING = (
    "A number with an interval: 95%, over the seeds of the checkpoints (Student's t) where a row "
    f"has {MINIMUM_SEEDS} or more, else over held-out sequences (bootstrap) unless the setting "
    "says over what.",
    "A row of one seed says nothing about the next training of the same model.",
    "Heads of different checkpoints are trained on the same labels, so that an interval over "
    "checkpoints says nothing about other labels.",
    "Controls that are trained are trained anew for each checkpoint; references that no training "
    "changes have the interval over sequences.",
)


def report(out: str | Path) -> Path:
    """Write ``report.md``, ``report.html`` and ``figures``; return the page's path.

    Raises:
        FileNotFoundError: ``out`` holds no finished probe run.
        CorruptArtefact: Its lines were edited or damaged.
    """
    from worldmodel.probing import load

    out = Path(out)
    lines, proof = load(out)
    shutil.rmtree(out / "figures", ignore_errors=True)
    sections = [_section(probes.get(name), mine, out) for name, mine in _grouped(lines, "probe")]
    markdown = "\n".join(_markdown(section, out) for section in sections)
    reading = "\n".join(f"- {sentence}" for sentence in READING)
    artefacts.write_bytes(out / "report.md", f"# Probes\n\n{markdown}\n{reading}\n".encode())
    artefacts.write_bytes(out / "report.html", _page(sections, lines, proof).encode())
    return out / "report.html"


def table(lines: Sequence[Line]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of one probe's lines, seeds of one model together."""
    settings = list(dict.fromkeys(key for line in lines for key in line["setting"]))
    worlds = [key for key in TOLD_APART if len({x["row"][key] for x in lines}) > 1]
    metrics = list(dict.fromkeys(key for line in lines for key in line["metrics"]))
    header = [*worlds, *settings, "who", "arm", "seeds", *metrics]
    rows = []
    for setting, mine in _alike(lines):
        row = mine[0]["row"]
        world, who, arm = [str(row[key]) for key in worlds], row["model"], row["arm"]
        seeds = {line["row"]["seed"] for line in mine}
        found = {name: [line["metrics"].get(name) for line in mine] for name in metrics}
        values = [_together(name, each) for name, each in found.items()]
        chosen = json.loads(setting)
        if "interval" in chosen and any(map(_pooled, found.values())):
            chosen["interval"] = OVER_SEEDS
        shown = [_plain(chosen.get(key, "")) for key in settings]
        rows.append([*world, *shown, who, arm, str(len(seeds)), *values])
    return header, rows


def _alike(lines: Sequence[Line]) -> Iterable[tuple[str, list[Line]]]:
    """Return the setting and the lines of each row, which differ in their seed alone."""
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        row = {name: value for name, value in line["row"].items() if name != "seed"}
        setting = json.dumps(line["setting"], sort_keys=True)
        groups.setdefault((setting, json.dumps(row, sort_keys=True)), []).append(line)
    return [(setting, mine) for (setting, _), mine in groups.items()]


def _middles(values: Sequence[Any]) -> list[float]:
    known = [value for value in values if value is not None]
    return [float(v[0]) if isinstance(v, list) else float(v) for v in known]


def _pooled(values: Sequence[Any]) -> bool:
    """Return whether a metric has an interval over seeds, and not that of one reference."""
    middles = _middles(values)
    enough = len(middles) >= MINIMUM_SEEDS and len(set(middles)) > 1
    return enough and all(map(math.isfinite, middles))


def _together(name: str, values: Sequence[Any]) -> str:
    """Return one metric over the seeds of a model."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    middles = _middles(known)
    if len(set(middles)) == 1:  # a reference that no training changes
        return _number(known[0])
    if name.endswith("standard_error"):  # it has no interval of its own
        return _number(sum(middles) / len(middles))
    if _pooled(known):
        return _number(over_seeds(middles))
    return "; ".join(_number(value) for value in known)


def _number(value: Any) -> str:
    if not isinstance(value, list):
        return f"{value:.4g}"
    middle, low, high = value
    if low == high == middle:
        return f"{middle:.3g}"
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _grouped(lines: Sequence[Line], key: str) -> Iterable[tuple[str, list[Line]]]:
    ordered = sorted(lines, key=lambda line: line[key])
    return ((name, list(mine)) for name, mine in itertools.groupby(ordered, lambda x: x[key]))


def _section(probe: probes.Probe, lines: list[Line], out: Path) -> dict[str, Any]:
    figures = probe.draw([dict(line) for line in lines], out)
    header, rows = table(lines)
    return {
        "name": probe.name,
        "about": probe.about,
        "header": header,
        "rows": rows,
        "figures": [(path, probe.captions[name]) for name, path in figures.items()],
    }


def _markdown(section: Mapping[str, Any], out: Path) -> str:
    head = [f"## {section['name']}", "", section["about"], ""]
    rows = [section["header"], ["---"] * len(section["header"]), *section["rows"]]
    body = ["| " + " | ".join(map(untrusted.markdown, row)) + " |" for row in rows]
    figures = [
        f"![{caption}]({path.relative_to(out)})\n\n{caption}"
        for path, caption in section["figures"]
    ]
    return "\n".join([*head, *body, "", *figures, ""])


def _page(sections: Sequence[Mapping[str, Any]], lines: Sequence[Line], proof: Line) -> str:
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, finalize=untrusted.lines)
    return environment.get_template("probes.html").render(
        sections=sections,
        embedded=_embedded,
        reading=READING,
        models=sorted({_title(line["subject"]) for line in lines}),
        commits=sorted({str(line["manifest"]["git"]["commit"])[:10] for line in lines}),
        manifest=proof,
    )


def _title(row: Mapping[str, Any]) -> str:
    elsewhere = "" if row["law"] == row["trained_on"] else f", trained on {row['trained_on']}"
    world = f"{row['protocol']}, {row['law']}{elsewhere}"
    return f"{row['model']}, {row['arm']}, seed {row['seed']} ({world})"


def _embedded(path: Path) -> str:
    kind = "gif" if path.suffix == ".gif" else "png"
    return f"data:image/{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"
