"""Tables, figures and one self-contained HTML page, made from the result files alone."""

from __future__ import annotations

import base64
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import figures, next_points
from benchmarks.task import Table
from benchmarks.views import markdown, mean_with_interval
from orbits import artefacts, laws
from orbits.motion import NEWTON
from symreg import results
from symreg.law_rate import NO_LAW, NOT_COMPARED
from symreg.leaderboard import Row, rows, separated, to_markdown, to_text
from symreg.result_rows import MINIMUM_SEEDS
from symreg.views import columns, html, words

ARMS = ("pretrained", "scratch")
TRANSFERRED = ("pretrained on ", "trained on ")
"""How the arms of models from other worlds begin."""
HEAD = "head, "
"""How the arms of trainings begin whose heads come from other worlds."""
COMPARED = ("m1", "m2", "r", "constant")
CAPTIONS = {
    "force_vectors": "Forces along one held-out orbit, true and predicted (drawn to one scale).",
    "exponents": "Exponents and constant of each row's predictions. Trained rows blue, controls "
    "grey.",
    "label_efficiency": "What pre-training is worth: accuracy against the label budget, both arms "
    "at equal numbers of steps. Lines join means; dots are seeds, each with its own labelled "
    "sequences. Unlimited: every step is new, so the longer scratch arm sees more labels.",
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
    law = manifest["config"].get("law", NEWTON)  # results from before there were others
    here = [line for line in lines if line["task"] == law]  # not trainings in other worlds
    table = rows(here, law)
    statements = [
        *leaks(manifest["config"]),
        *answers(table, law),
        *heads_elsewhere(lines),
        *comparisons(table),
    ]
    pictures = figures.draw_all(out, here, table, law)
    predicted = next_points.table(next_points.rows(here))
    sections = [to_markdown(table, law, lines)]
    if len(predicted.cells) > 1:
        sections.append(markdown(predicted))
    statement_list = "\n".join(f"- {statement}" for statement in statements)
    sections.append(f"## Reading\n\n{statement_list}\n")
    artefacts.write_bytes(out / "leaderboard.md", "\n".join(sections).encode())
    page = _render(lines, table, predicted, manifest, statements, pictures, law)
    artefacts.write_bytes(out / "report.html", page.encode())
    return (
        f"{to_text(table, law, lines)}\n"
        + "\n".join(statements)
        + f"\n\nreport: {out / 'report.html'}"
    )


def answers(table: list[Row], law: str) -> list[str]:
    """Say for each trained row at its largest budget what its predictions and formulas are."""
    truth = laws.get(law)
    sentences = []
    transferred = [row for row in table if row.arm.startswith(TRANSFERRED)]
    for row in [*_largest_budget(table), *transferred]:
        if row.r2_log is None or row.constant is None:
            sentences.append(f"{_name(row)}: failed.")
            continue
        fitted = ", ".join(
            f"{x} {mean_with_interval(value, '.3g')}" for x, value in row.exponents.items()
        )
        constant = f"constant {mean_with_interval(row.constant, '.3g')}"
        if truth.exponents is not None:  # else there is no constant to compare with
            constant += f", {row.constant[0] / truth.magnitude(1, 1, 1) - 1:+.1%} from the law's"
        found = ", ".join(f"{entry.engine} {entry.found} of {entry.total}" for entry in row.laws)
        dropped = f" on the {1 - row.dropped:.0%} that are positive" if row.dropped else ""
        sentences.append(
            f"{_name(row)} ({_seeds(row)}): R² of log F {row.r2_log[0]:.3f}{dropped}; exponents "
            f"{fitted}; {constant}; the law was found by {found} searches{_elsewhere(row)}."
        )
    return sentences


def leaks(config: Mapping[str, Any]) -> list[str]:
    """Say of a run with leaked labels that it is one."""
    if not (leak := config.get("label_leak")):
        return []
    return [
        f"Beside the stated budgets, {leak} labels of every scored sequence were learnt from, as "
        "published: no model is asked about held-out sequences here, and no row compares with one "
        "of a run without this leak."
    ]


def heads_elsewhere(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Say with how many labels the heads that come from other worlds were trained there."""
    trained = [(line["row"]["arm"], line["row"]["labels"]) for line in lines]
    return [
        f"Rows trained on {arm.removeprefix(HEAD)}: their heads learnt from {labels} labels there, "
        "and from none here."
        for arm, labels in dict.fromkeys(trained)
        if arm.startswith(HEAD)
    ]


def comparisons(table: list[Row]) -> list[str]:
    """Say which pairs of attentions, trained alike, the intervals tell apart, and which not.

    With n seeds a side and no difference, all of one side lie above or below the other in
    2 / C(2n, n) of the cases, for each metric looked at; the sentence gives that chance.
    """
    sentences = []
    trained = [row for row in table if row.arm in ARMS]
    trained.sort(key=lambda row: (row.arm, _budget(row)))
    for _, group in itertools.groupby(trained, key=lambda row: (row.arm, row.labels)):
        for one, other in itertools.combinations(sorted(group, key=lambda r: r.model), 2):
            apart = [metric for metric in COMPARED if separated(one, other, metric)]
            pair = f"{one.model} and {other.model}, {one.arm}, {one.labels} labels"
            seeds = f"{_seeds(one)} and {_seeds(other)}"
            if min(one.seeds, other.seeds) < MINIMUM_SEEDS:
                verdict = f"no claim ({seeds}; training varies between seeds)"
            elif apart:
                chance = 2 / math.comb(one.seeds + other.seeds, one.seeds)
                verdict = (
                    f"intervals are disjoint in {', '.join(apart)} ({seeds}; seeds alone would "
                    f"separate a metric in {chance:.0%} of comparisons, and {len(COMPARED)} "
                    "were made)"
                )
            else:
                verdict = f"no difference is shown ({seeds}; all intervals overlap)"
            sentences.append(f"{pair}: {verdict}.")
    return sentences


def _render(
    lines: list[dict[str, Any]],
    table: list[Row],
    predicted: Table,
    manifest: Mapping[str, Any],
    statements: list[str],
    pictures: Mapping[str, Path],
    law: str,
) -> str:
    images = [
        {
            "name": name,
            "caption": CAPTIONS[name],
            "data": base64.b64encode(path.read_bytes()).decode(),
        }
        for name, path in pictures.items()
    ]
    template = html.environment(Path(__file__).parent / "templates").get_template("report.html")
    return template.render(
        law=law,
        truth=words.truth(law),
        warnings=[*leaks(manifest["config"]), *words.warnings(table)],
        contestants=html.board([row for row in table if not row.is_control]),
        controls=html.board([row for row in table if row.is_control]),
        published=html.printed(),
        predicted=predicted,
        reading=words.READING,
        notes=columns.notes(),
        statements=statements,
        images=images,
        searches=html.searches(lines),
        failures=words.failures(lines),
        manifest=manifest,
        commits=sorted({str(line["manifest"]["git"]["commit"])[:10] for line in lines}),
        devices=sorted({line["manifest"]["device"] for line in lines}),
        cpu_minutes=sum(line["cpu_s"] for line in lines) / 60,
    )


def _elsewhere(row: Row) -> str:
    """Say which laws were found that do not rule here."""
    wrong: Counter[str] = sum((Counter(entry.laws) for entry in row.laws), Counter())
    for right in (row.task, NO_LAW, NOT_COMPARED):
        del wrong[right]
    named = ", ".join(f"{law} by {count}" for law, count in wrong.items())
    return f", a law that does not rule here by others: {named}" if named else ""


def _largest_budget(table: list[Row]) -> list[Row]:
    trained = [row for row in table if row.arm in ARMS]
    largest = max((_budget(row) for row in trained), default=0.0)
    return [row for row in trained if _budget(row) == largest]


def _budget(row: Row) -> float:
    return math.inf if row.labels == "unlimited" else float(row.labels)


def _name(row: Row) -> str:
    return f"{row.model}, {row.arm}, {row.labels} labels"


def _seeds(row: Row) -> str:
    return "1 seed" if row.seeds == 1 else f"{row.seeds} seeds"
