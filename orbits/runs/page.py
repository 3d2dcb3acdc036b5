"""The report: sentences, tables and pictures of a run as Markdown and as one HTML page.

Nothing is loaded from elsewhere and no script runs but the page's own: the page says so itself,
in a content security policy that names the script by its hash.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from orbits.runs import artefact, download, untrusted
from orbits.runs.first_screen import first_screen
from orbits.runs.folder import MARKDOWN, PAGE
from orbits.runs.result import Quantity, Result
from orbits.runs.statistics import CONVENTION
from orbits.runs.table import Table, escape
from orbits.runs.words import Words, glossary_of

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("sort.js", "folds.js")


@dataclass(frozen=True)
class Picture:
    """A figure of a report.

    Attributes:
        caption: What it shows.
        images: PNG or GIF files, or their bytes; several where one page does not hold it.
    """

    caption: str
    images: Sequence[Path | bytes]

    @property
    def urls(self) -> list[str]:
        """The images as data URLs."""
        return [_data_url(x if isinstance(x, bytes) else x.read_bytes()) for x in self.images]

    @property
    def drawings(self) -> list[str]:
        """The same as SVG; empty strings where there is none."""
        return [download.svg_url(image) for image in self.images]


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: Its heading.
        tables: Its tables; one of the same title has no heading of its own.
        sentences: Paragraphs above the tables.
        pictures: Figures below them.
        warnings: What a reader must know before anything else.
        folded: Whether a page shows it only when it is asked for; a warning is always shown.
    """

    title: str
    tables: Sequence[Table] = ()
    sentences: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    warnings: Sequence[str] = ()
    folded: bool = False

    def under(self, table: Table) -> Table:
        """Return a table without its title, if that is the section's."""
        return dataclasses.replace(table, title="") if table.title == self.title else table


@dataclass(frozen=True)
class Report:
    """A report, made from results alone.

    Its first sentence, table and figure are the first screen of its page, see
    :mod:`orbits.runs.first_screen`.

    Attributes:
        title: The question that the run answers.
        setting: What was run, in a sentence.
        sentences: The answers, the verdict first.
        sections: Tables and figures.
        warnings: What a reader must know before the answers.
        of_trainings: Whether brackets are intervals over trainings and test sets, and not of times.
    """

    title: str
    setting: str = ""
    sentences: Sequence[str] = ()
    sections: Sequence[Section] = ()
    warnings: Sequence[str] = ()
    of_trainings: bool = True

    @property
    def notes(self) -> list[str]:
        """What each column of the tables holds, each said once, and what their intervals are."""
        tables = [table for section in self.sections for table in section.tables]
        found = dict(note for table in tables for note in table.notes)
        boxes = (value for table in tables for row in table.rows for value in row)
        has_intervals = any(value.detail.startswith(("[", "(")) for value in boxes)
        intervals = (
            [f"Unless it says otherwise, {CONVENTION}"]
            if has_intervals and self.of_trainings
            else []
        )
        return [*(f"{headings}: {note}" for headings, note in found.items()), *intervals]

    def to_markdown(self, failures: Sequence[str] = ()) -> str:
        """Return the report without its figures and without tables that are folded."""
        parts = [f"# {escape(self.title)}"]
        parts += [escape(self.setting)] if self.setting else []
        parts += [f"**Warning: {escape(text)}**" for text in self.warnings]
        parts += [_list(self.sentences)] if self.sentences else []
        for section in self.sections:
            parts.append(f"## {escape(section.title)}")
            parts += [f"**Warning: {escape(text)}**" for text in section.warnings]
            parts += [escape(sentence) for sentence in section.sentences]
            for table in section.tables:
                if table.folded:
                    parts.append(f"{len(table.rows)} rows: see {PAGE}.")
                    continue
                parts.append(section.under(table).to_markdown(level=3).rstrip())
        if failures:
            parts.append(f"## Cells without a result\n\n{_list(failures)}")
        if self.notes:
            parts.append(f"## Columns\n\n{_list(self.notes)}")
        return "\n\n".join(parts) + "\n"

    def to_text(self, failures: Sequence[str] = ()) -> str:
        """Return the report for a terminal, without tables that are folded."""
        shown = untrusted.lines
        parts = [shown(self.title), *(f"WARNING: {shown(text)}" for text in self.warnings)]
        parts += [f"- {shown(sentence)}" for sentence in self.sentences]
        for section in self.sections:
            shown_tables = [section.under(table) for table in section.tables if not table.folded]
            if section.tables and not shown_tables:
                continue
            parts += ["", shown(section.title)]
            parts += [f"WARNING: {shown(text)}" for text in section.warnings]
            parts += [shown(sentence) for sentence in section.sentences]
            parts += [table.to_text().rstrip("\n") for table in shown_tables]
        parts += ["", "Cells without a result", *map(shown, failures)] if failures else []
        parts += ["", "Columns", *map(shown, self.notes)] if self.notes else []
        return "\n".join(parts) + "\n"


def failures(results: Sequence[Result]) -> list[str]:
    """Return a sentence for each result that failed, and for all skipped for one reason."""
    found: dict[tuple[Any, ...], list[Result]] = {}
    for number, result in enumerate(results):
        if not result.ok:
            own = number if result.status == "failed" else None
            found.setdefault((result.status, result.error, own), []).append(result)
    return [
        f"{status}: {same[0].case.label}{f' and {len(same) - 1} more' * (len(same) > 1)}: {error}"
        for (status, error, _), same in found.items()
    ]


def write(
    report: Report,
    results: Sequence[Result],
    manifest: Mapping[str, Any],
    out: Path,
    metrics: Mapping[str, Quantity] | None = None,
) -> Path:
    """Write ``report.md`` and ``report.html``; return the page's path.

    Args:
        report: The report.
        results: The results behind it, for failures, devices and commits.
        manifest: The manifest of the run.
        out: The results folder.
        metrics: What the metrics mean.
    """
    failed = failures(results)
    artefact.write_bytes(out / MARKDOWN, report.to_markdown(failed).encode())
    tables = [table for section in report.sections for table in section.tables]
    page = _environment().get_template("page.html")
    html = page.render(
        report=report,
        first=first_screen(report),
        words=Words(tables, metrics or {}, glossary_of(report.to_markdown(failed))),
        failures=failed,
        manifest=json.dumps(manifest, indent=2, default=str),
        made=_made(manifest),
        commits=sorted({str(_git(result)["commit"])[:10] for result in results}),
        devices=sorted({str(result.manifest.get("device", "cpu")) for result in results}),
        cpu_minutes=sum(result.cpu_s for result in results) / 60,
    )
    artefact.write_bytes(out / PAGE, html.encode())
    return out / PAGE


def _data_url(image: bytes) -> str:
    kind = "gif" if image.startswith(b"GIF8") else "png"
    return f"data:image/{kind};base64,{base64.b64encode(image).decode()}"


def _git(result: Result) -> Mapping[str, Any]:
    return result.manifest.get("git") or {"commit": None}


def _made(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return when a run was made and by which command, as far as its manifest says."""
    of_run = manifest.get("manifest") or manifest
    command = shlex.join(map(str, of_run.get("argv") or []))
    return {"date": str(of_run.get("utc") or "")[:10], "command": command}


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {escape(sentence)}" for sentence in sentences)


@functools.cache
def _environment() -> jinja2.Environment:
    """Return a jinja environment that escapes HTML and shows what would not print."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([TEMPLATES]),
        autoescape=True,
        finalize=untrusted.lines,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # They are files of this package, so they are not escaped.
    environment.globals["script"] = Markup(script)
    environment.globals["csv_url"] = download.csv_url
    environment.globals["file_name"] = download.file_name
    environment.globals["style"] = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))
    environment.globals["policy"] = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'"
    )
    return environment
