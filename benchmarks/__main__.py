"""``python -m benchmarks COMMAND``: run and report studies, and make pages of their results.

The second word of ``run`` chooses the one module that is imported; ``ls`` reads presets alone.
"""

from __future__ import annotations

from orbits.runs import stopped  # noqa: F401  (first: it answers Ctrl-C from here on)

# isort: split
import argparse
import importlib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from benchmarks import excerpts
from benchmarks.attention_names import check_attention
from orbits.runs import artefact, flags, folder, locks, output, presets, studies, study
from orbits.runs.cli import OneLineParser, called, leave, next_line, one_line_errors, taken
from orbits.runs.deferred import deferred
from orbits.runs.naming import counted

PACKAGES = (
    *("newton", "implied", "worlds", "worlds_scaling", "kepler_or_newton", "scaling", "few_labels"),
    *("exam", "recall", "language", "forecasting", "images", "cost", "search", "submissions"),
)
"""Packages of studies; a file with presets in YAML beside it is one."""
ELSEWHERE = ("symreg.leaderboard", "worldmodel.probes")
"""Studies that are run by commands of their own packages, and reported here too."""
PROG = called("benchmarks")
after_export = deferred("benchmarks.newton.export:next_step")
export_models = deferred("benchmarks.newton.export:export_models")
sheet = deferred("benchmarks.submissions.sheet:make_sheet")
check_exportable = deferred("benchmarks.newton.exportable:check")
check_site = deferred("benchmarks.site.places:check")
build_site = deferred("benchmarks.site.site:build")
runs_below = deferred("benchmarks.site.places:runs_below")
coverage_of = deferred("benchmarks.coverage.command:of_folders")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; bad input is one line on stderr and exit code 2, a failed cell 1."""
    words = taken(arguments)
    if words[:1] == ["exam"]:
        given, run = called("benchmarks questions OUT"), called("benchmarks run exam")
        leave(f"error: the questions are written by {given}; {run} examines a model", 2)
    options = _parser().parse_args(words)
    with one_line_errors(RuntimeError, resumes=options.command is _run):
        options.command(options)


def packages(*elsewhere: str) -> list[ModuleType]:
    """Return the packages of studies, those of other packages if they are named."""
    names = (*(f"benchmarks.{each}" for each in PACKAGES), *elsewhere)
    return [importlib.import_module(name) for name in names]


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog=PROG, description="Run and report the studies of the suite.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("ls", help="list studies and presets")
    output.offer(listing, "the names of the studies")
    listing.set_defaults(command=_list)

    run = commands.add_parser("run", help="run a study; an interrupted run continues")
    names = ", ".join(studies.preset_files(packages()))
    run.add_argument("study", metavar="STUDY", help=f"{names}; run STUDY --help has its flags")
    further = run.add_argument(
        "flags", nargs=argparse.REMAINDER, metavar="...", help="flags of the study"
    )
    further.required = False  # so that an error names what is missing alone
    run.set_defaults(command=_run)

    report = commands.add_parser("report", help="tables, figures and report.html of a run")
    written = "folder of the run; report.md, report.html and figures are written into it"
    report.add_argument("out", metavar="DIR", type=Path, help=written)
    output.offer(report, "the path of the page", full=True)
    report.set_defaults(command=_report)

    site = commands.add_parser("site", help="a leaderboard of results folders, as plain HTML files")
    site.add_argument("out", metavar="OUT", type=Path, help="folder of the site; new or a site")
    beside = "results folders, or folders of these, beside the kept results of the suite"
    site.add_argument("folders", metavar="DIR", nargs="*", default=[], type=Path, help=beside)
    site.add_argument("--only", action="store_true", help="leave the kept results out")
    output.offer(site, "the path of the page")
    site.set_defaults(command=_site)

    about = "which tables and figures of the papers the results answer, and how"
    coverage = commands.add_parser("coverage", help=about)
    coverage.add_argument("folders", metavar="DIR", nargs="*", default=[], type=Path, help=beside)
    coverage.add_argument("--only", action="store_true", help="leave the kept results out")
    form = output.offer(coverage, "how many of the papers' tables and figures are answered")
    form.add_argument("--markdown", action="store_true", help="print a page of Markdown")
    coverage.set_defaults(command=_coverage)

    tables = commands.add_parser(
        "excerpts", help="write the marked tables of a document anew, from the kept reports"
    )
    tables.add_argument("document", metavar="FILE", type=Path, help="for example RESULTS.md")
    tables.set_defaults(command=_excerpts)

    about = "the questions of the exam, for models from outside to answer"
    questions = commands.add_parser("questions", help=about)
    questions.add_argument("out", metavar="OUT", type=Path, help="new folder for the questions")
    about = "key of a held-back exam, a file that you keep to yourself; made if it is not there"
    questions.add_argument("--key", metavar="FILE", type=Path, help=about)
    output.offer(questions, "the signature")
    questions.set_defaults(command=_questions)

    export = commands.add_parser("export", help="the trained models of a run, to keep")
    export.add_argument("run", metavar="DIR", type=Path, help="the run's folder, with its cells")
    export.add_argument("--out", required=True, type=Path, help="folder for the models")
    for flag, of in (("--attention", _names), ("--seeds", _integers)):
        about = f"comma-separated {flag.removeprefix('--')} of models (default: all)"
        export.add_argument(flag, metavar="A,B", type=of, default=[], help=about)
    most = "refuse models of more megabytes in all (default: %(default)g)"
    export.add_argument("--limit-mb", metavar="MB", type=float, default=30.0, help=most)
    about = "round heads to float16, in half the bytes; no run starts from them"
    export.add_argument("--half", action="store_true", help=about)
    export.set_defaults(command=_export)
    return parser


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _integers(text: str) -> list[int]:
    try:
        return [int(name) for name in _names(text)]
    except ValueError:
        words = f"must be numbers such as 0,1,2, got {text!r}"
        raise argparse.ArgumentTypeError(words) from None


def _list(options: argparse.Namespace) -> None:
    found = {}
    lines, broken = [], []
    for name, path in studies.preset_files(packages()).items():
        try:
            about, known = presets.read_presets(path)
        except (OSError, ValueError) as error:  # that of a plug-in takes no other study down
            broken.append(f"no study {name}: {error}")
            continue
        costs = {each.name: each.about for each in known.values()}
        found[name] = {"about": about, "presets": costs}
        lines.append(f"{name:14s} {about}")
        lines += [f"  --preset {preset:7s} {cost}" for preset, cost in costs.items()]
    output.say(
        options, lambda: "\n".join([*lines, *broken]), lambda: found, lambda: "\n".join(found)
    )


def _run(options: argparse.Namespace) -> None:
    chosen_study = studies.get(packages(), options.study)
    prog = f"{PROG} run {options.study}"
    chosen = flags.parse_study(chosen_study, options.flags, prog, check_attention)
    results = flags.execute(chosen_study, chosen)
    if results is None:
        return
    words, code = study.summary(results, chosen.out)
    output.say(
        chosen,
        lambda: f"{words}\n{next_line(f'benchmarks report {shlex.quote(str(chosen.out))}')}",
        lambda: {"out": str(chosen.out), "results": [result.to_json() for result in results]},
        lambda: str(chosen.out),
    )
    if code:
        sys.exit(code)


def _export(options: argparse.Namespace) -> None:
    check_exportable(options.run)  # before torch is imported
    models = export_models(
        *(options.run, options.out, options.attention, options.seeds, options.limit_mb),
        half=options.half,
    )
    size = sum(file.stat().st_size for model in models for file in model.iterdir())
    print(f"{counted(len(models), 'model')}, {size / 1e6:.1f} MB: {options.out}")
    print(after_export(models[0]))


def _report(options: argparse.Namespace) -> None:
    name = folder.study_name(options.out)
    locks.refuse_links(options.out)
    flags.say_report(options, _find(name), options.out)


def _find(name: str) -> study.Study:
    return studies.get(packages(*ELSEWHERE), name)


def _questions(options: argparse.Namespace) -> None:
    signature, what = sheet(options.out, options.key)
    key = "" if options.key is None else f" --key {options.key}"
    then = f"next: {called(f'benchmarks run submissions FOLDER{key}')}, once there are answers"
    output.say(
        options,
        lambda: f"{what}: {options.out}\nsignature {signature}\n{then}",
        lambda: {"out": str(options.out), "signature": signature},
        lambda: signature,
    )


def _site(options: argparse.Namespace) -> None:
    check_site(options.out, options.folders)  # before matplotlib is imported
    index = build_site(options.out, options.folders, packages(*ELSEWHERE), kept=not options.only)
    output.say(
        options,
        lambda: f"written {options.out}\nnext: open {index} in a browser",
        lambda: {"out": str(options.out), "page": str(index)},
        lambda: str(index),
    )


def _coverage(options: argparse.Namespace) -> None:
    for place in options.folders:
        runs_below(place)  # before matplotlib is imported
    made = coverage_of(options.folders, packages(*ELSEWHERE), kept=not options.only)
    text = made.to_markdown if options.markdown else made.to_text
    output.say(options, lambda: text().rstrip(), made.record, lambda: made.summary)


def _excerpts(options: argparse.Namespace) -> None:
    text = excerpts.filled(options.document.read_text(encoding="utf-8"))
    artefact.write_bytes(options.document, text.encode())
    print(f"written    {options.document}")


if __name__ == "__main__":
    main()
