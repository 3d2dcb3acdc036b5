"""Flags: the command line of a study, from the dataclass of its settings."""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import jsonargparse

from orbits.runs import cost, folder, output, presets, reuse
from orbits.runs.choices import TYPES
from orbits.runs.cli import OneLineParser, hint, leave
from orbits.runs.executors import Execution
from orbits.runs.folder import Existing
from orbits.runs.result import Result
from orbits.runs.settings import build_settings, resolve_types
from orbits.runs.study import Study, checked_cells, report, run

KINDS = {**{kind.__name__: words for kind, words in TYPES.items()}, "NoneType": "none"}
"""Types of values in plain words, by their names."""


class SettingsParser(jsonargparse.ArgumentParser):
    """A parser of dataclasses whose flags have hyphens and whose errors are one line."""

    def error(self, message: str, *_: Any) -> NoReturn:
        """Print the message and exit."""
        text = _of_a_value(" ".join(message.split()))
        leave(f"error: {text}{hint(text, self._option_string_actions)}", 2)


@dataclasses.dataclass(frozen=True)
class Chosen:
    """A parsed command line of a study.

    Attributes:
        settings: The study's settings.
        preset: Name of the preset they started from.
        out: The results folder.
        execution: Executor of the cells.
        existing: Treatment of results that are in the folder already.
        sources: Results folders to take finished cells from.
        dry_run: Print the cells and what they cost, and stop.
        full: Print every table of a report.
        json: Print one JSON object.
        quiet: Print what matters alone.
    """

    settings: Any
    preset: str
    out: Path
    execution: Execution
    existing: Existing
    sources: tuple[Path, ...]
    dry_run: bool
    full: bool
    json: bool
    quiet: bool


def parse_study(
    study: Study,
    arguments: Sequence[str],
    prog: str,
    check: Callable[[Any], None] = lambda settings: None,
    reports: bool = False,
) -> Chosen:
    """Read the command line of a study, with the flags of a report if its command ``reports``."""
    known = presets.of(study)
    first = OneLineParser(add_help=False)
    first.add_argument("--preset", default="small")
    preset = presets.get(study, first.parse_known_args(arguments)[0].preset)
    parser = SettingsParser(prog=prog, description=study.about, allow_abbrev=False)
    about = "; ".join(f"{name}: {each.about}" for name, each in known.items())
    parser.add_argument("--preset", default=preset.name, help=f"settings to start from ({about})")
    resolve_types(study.Settings)
    parser.add_class_arguments(study.Settings, skip={study.words} if study.words else set())
    if study.words:
        parser.add_argument(study.words, nargs="+", help=_about(study.Settings, study.words))
    group = parser.add_argument_group("The run")
    group.add_argument("--out", type=str, help="results folder (default: runs/STUDY-PRESET)")
    group.add_argument(
        "--dry_run", action="store_true", help="print the cells and what they cost, and stop"
    )
    output.offer(parser, f"the path of the {'page' if reports else 'results'}, or a cost", reports)
    group.add_argument("--reuse", default="", help="comma-separated results to take cells from")
    parser.add_class_arguments(Existing, as_group=False)
    parser.add_class_arguments(Execution)
    parser.set_defaults(dataclasses.asdict(study.execution))
    parser.set_defaults(dict(preset.values))
    if preset.workers is not None:
        parser.set_defaults({"workers": preset.workers})
    _as_flags(parser)
    types = {**_types(study.Settings), **_types(Existing), **_types(Execution)}
    given = parser.parse_args(_plain(arguments, types))
    # Each has its own fields, as groups of one namespace.
    values = given.as_dict()
    pick = {
        kind: {f.name: values[f.name] for f in dataclasses.fields(kind)}
        for kind in (study.Settings, Existing, Execution)
    }
    asked = build_settings(study.Settings, pick[study.Settings])
    check(asked)
    sources = tuple(Path(name.strip()) for name in given.reuse.split(",") if name.strip())
    for source in sources:
        reuse.check(source)
    execution = Execution(**pick[Execution])
    settings = study.resolve(asked)
    config = study.config(settings, preset.name)
    out = Path(given.out) if given.out else study.out(settings, preset.name)
    existing = Existing(**pick[Existing])
    folder.check(out, config, existing)  # before what may import torch
    if not given.dry_run:
        folder.check_writable(out)
    study.check_changes(settings, study.changes(config))
    return Chosen(
        settings=settings,
        preset=preset.name,
        out=out,
        execution=execution,
        existing=existing,
        sources=sources,
        dry_run=given.dry_run,
        full=reports and given.full,
        json=given.json,
        quiet=given.quiet,
    )


def execute(study: Study, chosen: Chosen) -> list[Result] | None:
    """Run the command line of a study.

    Returns:
        All results, failed ones included; None where the cells were listed alone.
    """
    if chosen.dry_run:
        _say_cost(study, chosen)
        return None
    with output.on_the_way(chosen):
        return run(
            study,
            chosen.settings,
            chosen.out,
            chosen.execution,
            preset=chosen.preset,
            existing=chosen.existing,
            sources=chosen.sources,
        )


def say_report(asked: Any, of: Study, out: Path, before: str = "") -> None:
    """Write and print the report of a run: its path alone, or its path and all results.

    Args:
        asked: The flags; ``full`` among them.
        of: The study.
        out: The results folder.
        before: Text in front of the report.
    """
    said, page = report(of, out, asked.full), out / folder.PAGE
    output.say(
        asked,
        lambda: f"{before}{said}",
        lambda: {
            "report": str(page),
            "results": [result.to_json() for result in folder.load(out)[0]],
        },
        lambda: str(page),
    )


def _say_cost(study: Study, chosen: Chosen) -> None:
    """Print the cells, and the cost of those that are neither finished nor reused."""
    cells = checked_cells(study, chosen.settings, chosen.out, chosen.existing, chosen.sources)
    if not cells:
        study.check(chosen.settings)  # says what is missing
    fresh = chosen.existing.overwrite
    left = reuse.plan(cells, chosen.sources, chosen.out, study.restore, fresh=fresh).left
    output.say(
        chosen,
        lambda: f"{study.plan(cells, chosen.settings)}\n\n{cost.summary(left, cells)}",
        lambda: cost.record(left, cells),
        lambda: f"{cost.record(left, cells)['cpu_s'] / 60:.1f} CPU minutes",
    )


def _of_a_value(message: str) -> str:
    """Return an error of jsonargparse in plain words, if it is about a value of the wrong type."""
    key = re.match(r'Parser key "([\w.]+)":', message)
    kinds = dict.fromkeys(re.findall(r"Expected a <class '(\w+)'>", message))
    value = re.search(r"(?:Got|Given) value: (.*)$", message)
    if key is None or value is None:
        return message
    flag = key[1].replace("_", "-")
    items = value[1].strip("[]").split(",")
    if "tuple" in message and len(items) > 1 and not all(map(str.strip, items)):
        return f"--{flag} has an empty item, got {value[1].strip('[]')!r}"
    if not (kinds and KINDS.keys() >= kinds.keys()):
        return message
    words = " or ".join(KINDS[kind] for kind in kinds)
    return f"--{flag} must be {words}, got {value[1]!r}"


def _about(kind: type, name: str) -> str | None:
    """Return a field's description in the docstring of a dataclass."""
    from docstring_parser import parse

    fields = parse(kind.__doc__ or "").params
    return next((field.description for field in fields if field.arg_name == name), None)


def _as_flags(parser: jsonargparse.ArgumentParser) -> None:
    """Make flags of fields: hyphens in place of underscores, docstrings without their markup."""
    for action in parser._actions:
        action.option_strings = [flag.replace("_", "-") for flag in action.option_strings]
        if action.help:
            action.help = re.sub(r":\w+:(?=`)|`", "", action.help)
    parser._option_string_actions = {
        flag: action for action in parser._actions for flag in action.option_strings
    }


def _types(kind: type, prefix: str = "") -> dict[str, Any]:
    """Return the type of each flag of a dataclass, those of its groups included."""
    hints = typing.get_type_hints(kind)
    found: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        flag = f"{prefix}{field.name}".replace("_", "-")
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            found |= _types(hint, f"{flag}.")
        else:
            found[flag] = hint
    return found


def _plain(arguments: Sequence[str], types: Mapping[str, Any]) -> list[str]:
    """Write lists without brackets, ``--flag`` and ``--no-flag``, and ``none`` as YAML has them.

    Raises:
        ValueError: A list is given twice, of which only the last would count.
    """
    found: list[str] = []
    waiting, lists = list(arguments), set[str]()
    while waiting:
        word = waiting.pop(0)
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--")
        negated = name.removeprefix("no-")
        if types.get(negated) is bool and not equals:
            given = waiting and waiting[0] in ("true", "false")
            found.append(f"--{negated}={waiting.pop(0) if given else str(negated == name).lower()}")
        elif word.startswith("--") and name in types:
            if name in lists:
                raise ValueError(f"{flag} is given twice; write {flag} A,B")
            if _is_list(types[name]):
                lists.add(name)
            if not equals and waiting and not waiting[0].startswith("--"):
                value, equals = waiting.pop(0), "="
            found.append(f"{flag}{equals}{_yaml(value, types[name])}" if equals else flag)
        else:
            found.append(word)
    return found


def _yaml(value: str, hint: Any) -> str:
    if value == "none" and type(None) in typing.get_args(hint):
        return "null"
    return f"[{value}]" if _is_list(hint) and not value.startswith("[") else value


def _is_list(hint: Any) -> bool:
    options = typing.get_args(hint) if type(None) in typing.get_args(hint) else ()
    return any(typing.get_origin(each) in (tuple, list) for each in (hint, *options))
