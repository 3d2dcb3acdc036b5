"""The leaderboard as one self-contained HTML page.

Nothing is loaded from elsewhere and no script runs but the page's own: the page says so itself,
in a content security policy that names the script by its hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbits import untrusted
from orbits.untrusted import printable
from symreg import published
from symreg.result_rows import Row
from symreg.views import words
from symreg.views.columns import COLUMNS, ENGINE, IDENTITY, MEASURES, Cell, cells, notes, tables
from symreg.views.words import Line

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parents[1] / "templates"
GROUPS = (
    ("", 1 + len(IDENTITY)),
    ("measured on the predictions: what may be claimed", len(MEASURES)),
    ("formulas that symbolic searches found on these predictions", len(ENGINE)),
)
DRAWN = 24
"""Contestants, and controls, that the figures show: a panel of a row takes some 60 kB."""
CAPTIONS = {
    "exponents": "Exponents and constant of each row's predictions: mean over seeds and the "
    "envelope of the seeds' 95% bootstrap intervals. The black line is what a perfect model has. "
    "An arrow lies beyond the scale, which the contestants set.",
    "spread": "What the searches picked, beside the exponents of the same predictions. The law "
    "picked may change from search to search while the exponents stand still.",
    "residuals": "ln(predicted / true) against each variable: median and 5-95% band of equally "
    "filled bins, one line per model seed. Zero is a perfect model.",
    "fronts": "Pareto fronts of all searches of each row. A dot is the formula that was chosen; "
    "loss and complexity are each engine's own and do not compare between engines.",
}


def to_html(
    lines: Sequence[Line], rows: Sequence[Row], law: str, manifest: Mapping[str, Any]
) -> str:
    """Return the page: tables that sort, figures, every formula, failures and provenance.

    Args:
        lines: The result lines behind the rows.
        rows: Rows of one law, in order; see :func:`symreg.result_rows.rows`.
        law: The true law.
        manifest: The manifest of the run, shown as it is.
    """
    sections = [
        {
            "title": title,
            "warnings": words.warnings(controls),
            "alike": words.alike([*contestants, *controls], law),
            "claims": words.claims(contestants),
            "contestants": board(contestants),
            "controls": board(controls),
            "figures": list(_figures([*contestants[:DRAWN], *controls[:DRAWN]], lines, law)),
            "left_out": _left_out({"contestants": contestants, "controls": controls}),
        }
        for title, contestants, controls in tables(rows)
    ]
    return (
        environment()
        .get_template("leaderboard.html")
        .render(
            law=law,
            truth=words.truth(law),
            sections=sections,
            published=printed(),
            reading=words.READING,
            notes=[note.split(": ", 1) for note in notes()],
            searches=searches(lines),
            failures=words.failures(lines),
            manifest=json.dumps(manifest, indent=2, default=str),
        )
    )


def _left_out(parts: Mapping[str, Sequence[Row]]) -> list[str]:
    """Say which rows the figures do not show."""
    return [
        f"The figures show the first {DRAWN} of {len(rows)} {name}; the tables have all. "
        "A leaderboard of the others alone draws them."
        for name, rows in parts.items()
        if len(rows) > DRAWN
    ]


def environment(*folders: Path) -> jinja2.Environment:
    """Return a jinja environment that escapes everything and knows this package's templates.

    It escapes HTML, and shows what would not print.

    Args:
        folders: Folders of further templates, which come first.
    """
    import jinja2
    from markupsafe import Markup

    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        finalize=untrusted.lines,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (TEMPLATES / "sort.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Both are files of this package, so they are not escaped.
    found.globals["script"] = Markup(script)
    found.globals["style"] = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))
    found.globals["policy"] = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'"
    )
    return found


def board(rows: Sequence[Row]) -> dict[str, Any]:
    """Return a table of rows for the template's ``sheet``: one line per row and engine."""
    lines = [
        [Cell(str(rank), order=rank), *own, *law]
        for rank, row in enumerate(rows, start=1)
        for own, law in cells(row)
    ]
    place = "by the distance of the exponents from the law's; overlapping intervals do not rank."
    headings = [("#", place)]
    headings += [(column.heading, column.note) for column in COLUMNS]
    return {"groups": GROUPS, "headings": headings, "lines": lines}


def searches(lines: Sequence[Line]) -> dict[str, Any]:
    """Return a table of every symbolic search and its formula for the template's ``sheet``."""
    body = []
    for line in lines:
        if line["kind"] != "law":
            continue
        row, metrics, ok = line["row"], line["metrics"], line["status"] == "ok"
        named = [row[part] for part in ("protocol", "model", "arm", "labels")]
        named += [row["seed"], line.get("engine"), line.get("seed")]
        named += [metrics["verdict"] if ok else "failed"]
        named += [metrics.get("symbolic"), metrics.get("dimensions")]
        fidelity = metrics.get("r2_log")
        body.append(
            [
                *(Cell(printable("-" if text is None else text), kind="name") for text in named),
                Cell("-" if fidelity is None else f"{fidelity:.4f}", order=fidelity),
                Cell(printable(line.get("expression" if ok else "error"), 2000), kind="formula"),
            ]
        )
    headings = [
        *("protocol", "model", "arm", "labels", "seed", "engine", "search"),
        *("verdict", "symbolic", "dimensions", "fidelity", "formula"),
    ]
    return {
        "groups": (),
        "headings": [(heading, "") for heading in headings],
        "lines": body,
    }


def printed() -> dict[str, Any]:
    """Return the published rows, with the note they need, for the template."""
    lines = [
        [
            Cell(row.model, kind="name"),
            Cell(row.formula, kind="formula"),
            Cell("-" if row.constant is None else f"{row.constant:g}", order=row.constant),
            Cell(row.source, kind="name"),
        ]
        for row in published.ROWS
    ]
    headings = [(heading, "") for heading in ("model", "formula", "constant", "source")]
    sheet = {"groups": (), "headings": headings, "lines": lines}
    return {"title": words.PUBLISHED_TITLE, "note": words.PUBLISHED_NOTE, "sheet": sheet}


def _figures(rows: Sequence[Row], lines: Sequence[Line], law: str) -> Iterator[dict[str, Any]]:
    from symreg.views import figures

    drawings: Mapping[str, tuple[int, Callable[[Sequence[Row]], bytes | None]]] = {
        "exponents": (24, lambda part: figures.exponents(part, law)),
        "spread": (24, figures.spread),
        "residuals": (6, lambda part: figures.residuals(part, lines)),
        "fronts": (16, lambda part: figures.fronts(part, lines)),
    }
    for name, (size, draw) in drawings.items():  # size: how many rows fit on a page
        parts = (draw(rows[start : start + size]) for start in range(0, len(rows), size))
        images = [base64.b64encode(image).decode() for image in parts if image is not None]
        if images:
            yield {"name": name, "caption": CAPTIONS[name], "images": images}
