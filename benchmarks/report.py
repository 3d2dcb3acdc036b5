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
from orbits import artefacts, laws, untrusted
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
        *mixed_backbones(here),
        *comparisons(table),
    ]
    pictures = figures.draw_all(out, here, table, law)
    predicted = next_points.table(next_points.rows(here))
    sections = [to_markdown(table, law, lines)]
    if len(predicted.cells) > 1:
        sections.append(markdown(predicted))
    statement_list = "\n".join(f"- {untrusted.markdown(statement)}" for statement in statements)
    sections.append(f"## Reading\n\n{statement_list}\n")
    artefacts.write_bytes(out / "leaderboard.md", "\n".join(sections).encode())
    page = _render(lines, table, predicted, manifest, statements, pictures, law)
    artefacts.write_bytes(out / "report.html", page.encode())
    return (
        f"{to_text(table, law, lines)}\n"
        + "\n".join(map(untrusted.lines, statements))
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
            f"{_name(row)} ({columns.seeds(row)}): R² of log F {row.r2_log[0]:.3f}{dropped}; "
            f"exponents {fitted}; {constant}; the law was found by {found} searches"
            f"{_elsewhere(row)}."
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


def mixed_backbones(lines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Say whose lines are of several trainings of one world model, as lines of other runs may be.

    A world model is determined by its configuration and seed up to rounding, which changes with
    the code, the libraries and the machine.
    """
    backbones: dict[tuple[str, int], set[str]] = {}
    for line in lines:
        row, digest = line["row"], line["manifest"].get("inputs", {}).get("pretrained")
        if digest and row["arm"] in ("world model", "pretrained"):
            backbones.setdefault((row["model"], row["seed"]), set()).add(digest)
    models = dict.fromkeys(model for (model, _), digests in backbones.items() if len(digests) > 1)
    if not models:
        return []
    return [
        f"The lines of {', '.join(models)} are of more than one training of the same "
        "configuration and seed: some were taken from another run (--reuse)."
    ]


def comparisons(table: list[Row]) -> list[str]:
    """Say which pairs of rows the intervals tell apart, and which not.

    Pairs are a model's two arms at one budget, and two attentions that were trained alike. With n
    seeds a side and no difference, all of one side lie above or below the other in 2 / C(2n, n)
    of the cases, for each metric looked at; sentences give that chance, and the last one how many
    comparisons there were.
    """
    trained = sorted((x for x in table if x.arm in ARMS), key=lambda x: (_budget(x), x.model))
    pairs = [
        (f"{one.model}, {one.labels} labels, {one.arm} and {other.arm}", one, other)
        for one, other in itertools.combinations(sorted(trained, key=lambda x: x.arm), 2)
        if (one.model, one.labels) == (other.model, other.labels)
    ]
    pairs += [
        (f"{one.model} and {other.model}, {one.arm}, {one.labels} labels", one, other)
        for arm in ARMS
        for one, other in itertools.combinations([x for x in trained if x.arm == arm], 2)
        if one.labels == other.labels
    ]
    sentences = [f"{pair}: {_compared(one, other)}." for pair, one, other in pairs]
    made = len(COMPARED) * sum(_is_comparable(one, other) for _, one, other in pairs)
    if made:
        sentences.append(
            f"Comparisons made: {made}, of {', '.join(COMPARED)}; where many are made, some "
            "intervals are disjoint by chance."
        )
    return sentences


def _compared(one: Row, other: Row) -> str:
    seeds = f"{columns.seeds(one)} and {columns.seeds(other)}"
    if one.failed or other.failed:
        return f"no claim ({seeds}; trainings that did not fail are not a sample of all)"
    if not _is_comparable(one, other):
        return f"no claim ({seeds}; training varies between seeds)"
    if not (apart := [metric for metric in COMPARED if separated(one, other, metric)]):
        return f"no difference is shown ({seeds}; all intervals overlap)"
    chance = 2 / math.comb(one.seeds + other.seeds, one.seeds)
    return (
        f"intervals are disjoint in {', '.join(apart)} ({seeds}; seeds alone would separate a "
        f"metric in {chance:.0%} of comparisons)"
    )


def _is_comparable(one: Row, other: Row) -> bool:
    return min(one.seeds, other.seeds) >= MINIMUM_SEEDS and not (one.failed or other.failed)


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
