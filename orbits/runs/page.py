"""The report: sentences, tables and pictures of a run as Markdown and as one HTML page.

Nothing is loaded from elsewhere and no script runs but the page's own: the page says so itself,
in a content security policy that names the script by its hash.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from orbits.runs import artefact, download, naming, untrusted
from orbits.runs.first_screen import first_screen
from orbits.runs.folder import MARKDOWN, PAGE
from orbits.runs.report import Picture, Report, Section
from orbits.runs.result import Quantity, Result
from orbits.runs.words import Words, glossary_of

__all__ = ["Picture", "Report", "Section", "failures", "write"]

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("sort.js", "folds.js")


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
    home: str = "",
) -> Path:
    """Write ``report.md`` and ``report.html``; return the page's path.

    Args:
        report: The report.
        results: The results behind it, for failures, devices and commits.
        manifest: The manifest of the run.
        out: The results folder.
        metrics: Meaning of the metrics.
        home: A page that it links back to; empty for none.
    """
    failed = failures(results)
    artefact.write_bytes(out / MARKDOWN, report.to_markdown(failed, out).encode())
    tables = [table for section in report.sections for table in section.tables]
    page = environment().get_template("page.html")
    html = page.render(
        report=report,
        home=home,
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


def _git(result: Result) -> Mapping[str, Any]:
    return result.manifest.get("git") or {"commit": None}


def _made(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return when a run was made and by which command, as far as its manifest says."""
    of_run = manifest.get("manifest") or manifest
    command = shlex.join(map(str, of_run.get("argv") or []))
    return {"date": str(of_run.get("utc") or "")[:10], "command": command}


@functools.cache
def environment(templates: Path = TEMPLATES) -> jinja2.Environment:
    """Return a jinja environment that escapes HTML and shows characters that would not print.

    Args:
        templates: A folder of further templates, which may use those of the page.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([templates, TEMPLATES]),
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
    environment.filters["prose"] = naming.in_prose
    environment.filters["sentence"] = naming.sentence
    environment.filters["heading"] = naming.heading
    environment.globals["in_box"] = naming.in_box
    environment.globals["csv_url"] = download.csv_url
    environment.globals["file_name"] = download.file_name
    environment.globals["style"] = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))
    environment.globals["policy"] = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'"
    )
    return environment
