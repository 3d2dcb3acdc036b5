"""The report of a task: its tables, its figures and the papers' numbers beside ours."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import published, verdicts
from benchmarks.task import Line, Table, Task, measurements
from benchmarks.views import interval, markdown
from orbits import artefacts, untrusted
from symreg import results
from symreg.views import html
from worldmodel.corpus import STANDARD_LIBRARY

MARKDOWN, PAGE = "report.md", "report.html"


def report(task: Task, out: Path) -> str:
    """Write ``report.md``, ``figures/*.png`` and ``report.html``; return the tables as text.

    Raises:
        FileNotFoundError: ``out`` is not a finished run.
        CorruptArtefact: A result file was edited or damaged.
        ValueError: Every cell of the run failed.
    """
    lines, manifest = results.load(out)
    asked = measurements(lines)
    if not asked and not any(x["status"] == "skipped" for x in lines):
        raise ValueError(f"{out}: no cell has a result; run it again")
    setting, same = _setting(task, manifest["config"])
    tables = beside_published(task, asked, setting, same)
    pictures: Mapping[str, Path] = {}
    if asked:
        tables = [*task.tables(asked), *_deviations(task), *tables]
        pictures = task.draw(asked, out / "figures")
    failures = [
        f"{x['status']}: {', '.join(map(str, x['row'].values()))}: {x['error']}"
        for x in lines
        if x["status"] != "ok"
    ]
    text = "\n".join(markdown(table) for table in tables)
    heading = f"# {task.name}: {task.about}\n\nSetting: {untrusted.markdown(setting)}.\n\n"
    corpora = _corpora(asked)
    heading += "".join(f"Text: {untrusted.markdown(corpus)}.\n\n" for corpus in corpora)
    failed = "".join(f"- {untrusted.markdown(sentence)}\n" for sentence in failures)
    artefacts.write_bytes(out / MARKDOWN, f"{heading}{text}{failed}".encode())
    images = [
        {"caption": caption, "data": base64.b64encode(path.read_bytes()).decode()}
        for caption, path in pictures.items()
    ]
    template = html.environment(Path(__file__).parent / "templates").get_template("task.html")
    page = template.render(
        task=task,
        setting=setting,
        metrics=task.metrics,
        tables=tables,
        images=images,
        failures=failures,
        manifest=manifest,
        corpora=corpora,
        commits=sorted({str(line["manifest"]["git"]["commit"])[:10] for line in lines}),
        devices=sorted({line["manifest"]["device"] for line in lines}),
        cpu_minutes=sum(line["cpu_s"] for line in lines) / 60,
    )
    artefacts.write_bytes(out / PAGE, page.encode())
    return f"{text}\nreport: {out / PAGE}"


def beside_published(
    task: Task, lines: Sequence[Line], setting: str, same_scale: bool
) -> list[Table]:
    """Return each published table with our numbers and what the intervals say of it.

    Args:
        task: The task.
        lines: Its measurements.
        setting: What ours are, in words.
        same_scale: Whether they are the preset ``paper`` as it stands.
    """
    return [
        Table(
            f"{table.paper}, {table.place}, beside ours",
            f"Paper: {table.setting}. Ours: {setting}; means over seeds. A number is judged "
            "by its difference to the table's baseline, ours paired by seed, with a 95% interval.",
            _judged(
                table,
                task.ours(lines, table.table),
                same_scale and table.table in task.same_scale,
            ),
        )
        for name in task.published
        for table in published.tables(name)
    ]


def _deviations(task: Task) -> list[Table]:
    """Return what differs from the published benchmark as a table; none where nothing does."""
    if not task.deviations:
        return []
    caption = "What a number beside a published one must be read with."
    rows = [[what, how] for what, how in task.deviations.items()]
    return [
        Table("How this differs from the published benchmark", caption, [["what", "how"], *rows])
    ]


def _setting(task: Task, config: Mapping[str, Any]) -> tuple[str, bool]:
    """Return a run's setting in words, and whether it is the preset ``paper`` as it stands."""
    preset = task.presets[config["preset"]]
    known = _flat(json.loads(json.dumps(preset.config())))
    given = _flat(config)
    changed = [
        f"{name} {_short(given[name])}"
        for name, value in known.items()
        # A field that old results lack had its default.
        if name not in ("seeds", "checkpoints") and given.get(name, value) != value
    ]
    if config.get("checkpoints"):
        words = f"checkpoints {_short(config['checkpoints'])}, asked as preset {preset.preset} asks"
        return words + (f" but with {', '.join(changed)}" if changed else ""), False
    words = f"preset {preset.preset} ({preset.about})"
    if changed:
        words += f" with {', '.join(changed)}"
    return words, preset.preset == "paper" and not changed


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings with those of groups beside them, by names as of their flags."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _corpora(lines: Sequence[Line]) -> list[str]:
    """Return the texts that the models of some lines were trained on and asked, in words."""
    found = set()
    for line in lines:
        for key, what in (("corpus", "trained on"), ("asked_corpus", "asked")):
            if known := line["manifest"].get(key):
                # The standard library's version is Python's.
                own = known["corpus"] == STANDARD_LIBRARY
                python = f"Python {known['python']}, " if own else ""
                found.add(f"{what} {known['corpus']} ({python}sha256 {known['sha256'][:16]})")
    return sorted(found)


def _short(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _judged(table: published.Table, ours: verdicts.Ours, same_scale: bool) -> list[list[str]]:
    cells = [["row", "metric", "paper", "ours", "verdict", "why"]]
    for found in verdicts.verdicts(table, ours, same_scale):
        metric, row = table.metric(found.metric), table.row(found.row)
        seeds = ours.get(found.row, {})
        known = [metric.read(values) for values in seeds.values()]
        values = {n: float(x) for n, x in enumerate(known) if x is not None}
        cells.append(
            [
                row.label,
                found.metric,
                f"{metric.read(row.values):g}",
                interval(values) if values else "",
                found.outcome,
                found.reason,
            ]
        )
    return cells
