"""The report as data: sentences, tables and pictures, and the same as Markdown."""

from __future__ import annotations

import base64
import dataclasses
import io
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orbits.runs import download, untrusted
from orbits.runs.deferred import deferred
from orbits.runs.folder import PAGE
from orbits.runs.statistics import CONVENTION
from orbits.runs.table import Table, escape

opened = deferred("PIL.Image:open")


@dataclass(frozen=True)
class Picture:
    """A figure of a report.

    Attributes:
        caption: Description of the figure.
        images: PNG or GIF files, or their bytes; several where one page does not hold it.
    """

    caption: str
    images: Sequence[Path | bytes]

    @property
    def urls(self) -> list[str]:
        """The images as data URLs."""
        return [_data_url(x if isinstance(x, bytes) else x.read_bytes()) for x in self.images]

    def links(self, place: Path | None) -> list[str]:
        """Return a line of Markdown for each image that is a file in a folder."""
        if place is None:
            return []
        files = [x for x in self.images if isinstance(x, Path) and place in x.parents]
        paths = (urllib.parse.quote(file.relative_to(place).as_posix()) for file in files)
        return [f"![{escape(self.caption)}]({path})" for path in paths]

    @property
    def widths(self) -> list[int]:
        """Widths of the images in pixels; 0 where it cannot be read."""
        return [size(image)[0] for image in self.images]

    @property
    def drawings(self) -> list[str]:
        """The images as SVG; empty strings where there is none."""
        return [download.svg_url(image) for image in self.images]


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: Its heading.
        tables: Its tables; one of the same title has no heading of its own.
        sentences: Paragraphs above the tables.
        pictures: Figures below them.
        warnings: Warnings, shown before anything else.
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
        setting: Setting of the run, in a sentence.
        sentences: The answers, the verdict first.
        sections: Tables and figures.
        warnings: Warnings, shown before the answers.
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
        """Notes on the tables' columns, each once, and on their intervals."""
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

    def to_markdown(self, failures: Sequence[str] = (), place: Path | None = None) -> str:
        """Return the report without tables that are folded, with links to figures of its folder.

        Args:
            failures: A sentence for each cell without a result.
            place: The folder that it is written to; none for no figures.
        """
        parts = [f"# {escape(self.title)}"]
        parts += [escape(self.setting)] if self.setting else []
        parts += [f"**Warning: {escape(text)}**" for text in self.warnings]
        parts += [_list(self.sentences)] if self.sentences else []
        for section in self.sections:
            links = [link for picture in section.pictures for link in picture.links(place)]
            if not (links or section.tables or section.sentences or section.warnings):
                continue
            parts.append(f"## {escape(section.title)}")
            parts += [f"**Warning: {escape(text)}**" for text in section.warnings]
            parts += [escape(sentence) for sentence in section.sentences]
            parts += links
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


def size(image: Path | bytes) -> tuple[int, int]:
    """Return width and height of an image in pixels; zeros for what cannot be read."""
    try:
        with opened(io.BytesIO(image) if isinstance(image, bytes) else image) as picture:
            return int(picture.width), int(picture.height)
    except (OSError, ValueError):
        return 0, 0


def _data_url(image: bytes) -> str:
    kind = "gif" if image.startswith(b"GIF8") else "png"
    return f"data:image/{kind};base64,{base64.b64encode(image).decode()}"


def _list(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {escape(sentence)}" for sentence in sentences)
