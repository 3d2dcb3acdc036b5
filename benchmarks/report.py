"""Tables, figures and one self-contained HTML page, made from the result files alone."""

from __future__ import annotations

import base64
import itertools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from benchmarks import figures, results
from orbits import artefacts, laws
from symreg.leaderboard import Row, rows, separated, to_markdown, to_text
from symreg.result_rows import MINIMUM_SEEDS

CAPTIONS = {
    "force_vectors": "Forces along one held-out orbit, true and predicted (drawn to one scale).",
    "exponents": "Exponents and constant of each row's predictions. Trained rows blue, controls "
    "grey.",
    "label_efficiency": "What pre-training is worth: accuracy against the label budget. Lines join "
    "means, dots are seeds.",
    "magnitudes": "Predicted against true magnitude on held-out sequences.",
    "loss_curves": "Training (thin) and validation (thick) losses.",
}


def report(out: Path) -> str:
    """Write ``leaderboard.md``, ``figures/*.png`` and ``report.html``; return the text table.

    Raises:
        FileNotFoundError: ``out`` is not a finished run.
        CorruptArtefact: A result file was edited or damaged.
    """
    lines, manifest = results.load(out)
    law = next(line["manifest"]["config"]["law"] for line in lines if line["kind"] == "law")
    table = rows(lines, law)
    statements = [*answers(table, law), *comparisons(table)]
    pictures = figures.draw_all(out, lines, table, law)
    markdown = to_markdown(table)
    statement_list = "\n".join(f"- {statement}" for statement in statements)
    artefacts.write_bytes(
        out / "leaderboard.md", f"{markdown}\n## Reading\n\n{statement_list}\n".encode()
    )
    page = _render(lines, table, manifest, statements, pictures, law)
    artefacts.write_bytes(out / "report.html", page.encode())
    return f"{to_text(table)}\n" + "\n".join(statements) + f"\n\nreport: {out / 'report.html'}"


def answers(table: list[Row], law: str) -> list[str]:
    """Say for each trained row at its largest budget how close its predictions are to the law."""
    truth = laws.get(law)
    if truth.exponents is None:
        return []
    sentences = []
    for row in _largest_budget(table):
        if row.r2_log is None or row.constant is None:
            sentences.append(f"{_name(row)}: failed.")
            continue
        gap = max(abs(row.exponents[x][0] - truth.exponents[x]) for x in truth.exponents)
        constant = row.constant[0] / next(iter(truth.parameters.values())) - 1
        found = sum(entry.found for entry in row.laws)
        tried = sum(entry.total for entry in row.laws)
        sentences.append(
            f"{_name(row)} ({_seeds(row)}): R² of log F {row.r2_log[0]:.3f}, exponents within "
            f"{gap:.3f} of the law's, constant {constant:+.1%}; the symbolic law was found in "
            f"{found} of {tried} searches."
        )
    return sentences


def comparisons(table: list[Row]) -> list[str]:
    """Say which pairs of attentions, trained alike, the intervals tell apart, and which not."""
    sentences = []
    trained = [row for row in table if row.arm in ("pretrained", "scratch")]
    trained.sort(key=lambda row: (row.arm, row.labels))
    for _, group in itertools.groupby(trained, key=lambda row: (row.arm, row.labels)):
        for one, other in itertools.combinations(sorted(group, key=lambda r: r.model), 2):
            metrics = ["m1", "m2", "r", "constant"]
            metrics += [f"law@{entry.engine}" for entry in one.laws]
            apart = [metric for metric in metrics if separated(one, other, metric)]
            pair = f"{one.model} and {other.model}, {one.arm}, {one.labels} labels"
            if min(one.seeds, other.seeds) < MINIMUM_SEEDS:
                verdict = f"no claim: {_seeds(one)} each, and training varies between seeds"
            elif apart:
                verdict = f"intervals are disjoint in {', '.join(apart)}"
            else:
                verdict = "no difference is shown (all intervals overlap)"
            sentences.append(f"{pair}: {verdict}.")
    return sentences


def _render(
    lines: list[dict[str, Any]],
    table: list[Row],
    manifest: Mapping[str, Any],
    statements: list[str],
    pictures: Mapping[str, Path],
    law: str,
) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["number"] = _number
    images = [
        {
            "name": name,
            "caption": CAPTIONS[name],
            "data": base64.b64encode(path.read_bytes()).decode(),
        }
        for name, path in pictures.items()
    ]
    return environment.get_template("report.html").render(
        law=laws.get(law),
        rows=table,
        contestants=[row for row in table if not row.is_control],
        controls=[row for row in table if row.is_control],
        statements=statements,
        images=images,
        searches=[line for line in lines if line["kind"] == "law"],
        failures=[line for line in lines if line["status"] == "failed"],
        manifest=manifest,
        cpu_minutes=sum(line["cpu_s"] for line in lines) / 60,
    )


def _largest_budget(table: list[Row]) -> list[Row]:
    def size(row: Row) -> float:
        return math.inf if row.labels == "unlimited" else float(row.labels)

    trained = [row for row in table if row.arm in ("pretrained", "scratch")]
    largest = max((size(row) for row in trained), default=0.0)
    return [row for row in trained if size(row) == largest]


def _name(row: Row) -> str:
    return f"{row.model}, {row.arm}, {row.labels} labels"


def _seeds(row: Row) -> str:
    return "1 seed" if row.seeds == 1 else f"{row.seeds} seeds"


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}g}"
