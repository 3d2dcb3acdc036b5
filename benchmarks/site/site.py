"""The site: an index of results folders, a page of each, of the papers' tables and of words.

Everything is made from result lines; the figures beside kept ones, whose cells are gone, are taken
as they are. Nothing is loaded from elsewhere: the folder works from a disk as from a server.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

from tqdm import tqdm

from benchmarks.coverage.judge import Source
from benchmarks.coverage.page import RULE, coverage
from benchmarks.coverage.page import TITLE as COVERED
from benchmarks.excerpts import KEPT
from benchmarks.site.index import PICTURED, Run, context
from benchmarks.site.places import CLAIM, COVERAGE, GLOSSARY, INDEX, check, find
from orbits.runs import artefact, folder, locks, page, studies, study, words
from orbits.runs.first_screen import first_screen

TEMPLATES = Path(__file__).parent / "templates"
TAKEN = (folder.CLAIM, folder.LINES, f"{folder.LINES}.json")
PICTURES = (".png", ".gif", ".svg")


def build(
    out: Path, folders: Sequence[Path], packages: Iterable[ModuleType], kept: bool = True
) -> Path:
    """Write the site; return the path of its index."""
    sources = find([*([KEPT] if kept and KEPT.is_dir() else []), *folders])
    check(out, [])
    places = list(packages)
    known = {name: studies.get(places, folder.study_name(path)) for name, path in sources.items()}
    for path in sources.values():
        folder.load(path)  # refuses what is damaged before anything is written
        locks.refuse_links(path)
    out.mkdir(parents=True, exist_ok=True)
    _forget(out)
    artefact.write_bytes(out / CLAIM, json.dumps(sorted(map(_page, sources))).encode() + b"\n")
    runs = [
        _run(known[name], name, path, out)
        for name, path in tqdm(sources.items(), desc="pages", unit="page")
    ]
    entries = words.entries()
    render = page.environment(TEMPLATES).get_template
    others = {"glossary": GLOSSARY if entries else "", "coverage": COVERAGE}
    artefact.write_bytes(out / INDEX, render(INDEX).render(**context(runs), **others).encode())
    covered = coverage([Source(run.name, run.study, run.config, run.results) for run in runs])
    plain = words.Words(covered.tables, {}, ())
    html = render(COVERAGE).render(title=COVERED, rule=RULE, made=covered, words=plain, home=INDEX)
    artefact.write_bytes(out / COVERAGE, html.encode())
    if entries:
        artefact.write_bytes(
            out / GLOSSARY, render(GLOSSARY).render(entries=entries, home=INDEX).encode()
        )
    return out / INDEX


def _run(its: study.Study, name: str, source: Path, out: Path) -> Run:
    """Write the page of a results folder from its lines and figures, and return its content."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / name
        (copy / folder.FIGURES).mkdir(parents=True)
        for file in TAKEN:
            shutil.copyfile(source / file, copy / file)
        for picture in sorted((source / folder.FIGURES).glob("*")):
            if picture.suffix in PICTURES and picture.is_file() and not picture.is_symlink():
                shutil.copyfile(picture, copy / folder.FIGURES / picture.name)
        report, results = study.write_report(its, copy, home=INDEX)
        artefact.write_bytes(out / _page(name), (copy / folder.PAGE).read_bytes())
        first = first_screen(report)
        config = artefact.load_record(copy / folder.CLAIM)["config"]
        # Read while they are there.
        urls = first.picture.urls if first.picture and its.name in PICTURED else []
    return Run(name, _page(name), its, config, first.verdict, urls, results)


def _page(name: str) -> str:
    return f"{name}.html"


def _forget(out: Path) -> None:
    """Delete the pages of an earlier site in the same folder."""
    if not (out / CLAIM).is_file():
        return
    try:
        pages = json.loads((out / CLAIM).read_text(encoding="utf-8"))
        if not isinstance(pages, list) or not all(isinstance(name, str) for name in pages):
            raise ValueError
    except ValueError:
        raise ValueError(f"{out / CLAIM} is damaged; choose another folder") from None
    for name in pages:
        artefact.below(out, name).unlink(missing_ok=True)
