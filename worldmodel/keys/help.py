"""Help on the keys of a model and its data, made of their sources in place of importing them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from orbits import protocols
from orbits.runs.choices import unknown
from orbits.runs.cli import called
from worldmodel.keys import signatures
from worldmodel.keys.signatures import CLASSES, LINKED, Key, class_of
from worldmodel.keys.values import type_text

ACROSS, FLAG = 100, 36
"""Letters of a line of the short help, and of its flag with the default."""
CONSTANTS = {"None": "null", "True": "true", "False": "false"}
FLAGS = {f"--{group}.help": group for group in CLASSES}
DEFAULTS = {"finetune": {"model": "ForceModel"}}
"""Classes that a command explains where none is named, if they are not the first."""


def page(command: str, arguments: Sequence[str], chosen: Mapping[str, str]) -> str | None:
    """Return a line per key of the class that is asked for: its name, type, default and use.

    ``--model.help CLASS`` asks; without CLASS for the one that is chosen, or the default.

    Args:
        command: fit, finetune or an evaluation.
        arguments: The other words, of which one asks for help on a model or its data.
        chosen: The classes that a command line chooses, by group.

    Returns:
        The page; None of a class from elsewhere, which must be imported to be known.

    Raises:
        ValueError: The name is that of no class; the message lists the choices.
    """
    place, flag, name = next(
        (place, flag, name)
        for place, word in enumerate(arguments)
        for flag, _, name in [word.partition("=")]
        if flag in FLAGS
    )
    group = FLAGS[flag]
    name = name or "".join(x for x in arguments[place + 1 : place + 2] if not x.startswith("-"))
    default = DEFAULTS.get(command, {}).get(group, CLASSES[group][0])
    name = name or chosen.get(group, "") or default
    kind = class_of(group, name)
    if kind is None and "." not in name:
        raise unknown(f"{group} class", name, CLASSES[group])
    if kind is None:
        return None
    typed = called(f"worldmodel {command}")
    rows = [_row(group, key, each) for key, each in signatures.keys(group, kind).items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(("", *map(str.ljust, row, widths))).rstrip() for row in rows]
    return "\n".join(
        [
            f"usage: {typed} [-c CONFIG] [--{group}.KEY VALUE ...]",
            f"\n{kind}: {signatures.summary(group, kind)}\n",
            *lines,
            f"\n`{typed} --{group}.help CLASS` lists those of another class: "
            f"{', '.join(each for each in CLASSES[group] if each != kind)}.",
        ]
    )


def brief(command: str, chosen: Mapping[str, str]) -> str:
    """Return a short line per key of the model and the data of a training, with its default.

    Args:
        command: fit or finetune.
        chosen: The classes that a command line chooses, by group; of one from elsewhere nothing
            is known without importing it, and nothing is shown.
    """
    lines = []
    for group in CLASSES:
        default = DEFAULTS.get(command, {}).get(group, CLASSES[group][0])
        kind = class_of(group, chosen.get(group, "") or default)
        if kind is None:
            continue
        lines.append(f"\nkeys of {kind}, with their defaults:")
        for name, key in signatures.keys(group, kind).items():
            if group == "data" or name not in LINKED:
                flag, _, value, about = _row(group, name, key)
                line = f"  {f'{flag}={value}':{FLAG}s} {about}"
                lines.append(_cut(line.rstrip()))
    return "\n".join(lines)


def _cut(line: str) -> str:
    """Return a line that ends at a word where it is longer than a screen is wide."""
    return line if len(line) <= ACROSS else f"{line[: ACROSS - 4].rpartition(' ')[0]} ..."


def _row(group: str, name: str, key: Key) -> tuple[str, str, str, str]:
    written = ast.unparse(key.default) if key.default else "required"
    default = CONSTANTS.get(written, written.strip("'"))
    about = key.about
    if group == "model" and name in LINKED:
        about = f"as data.{name}"
    elif name == "protocol":
        about = f"One of {', '.join(protocols.names())}."
    return f"--{group}.{name}", type_text(group, key), default, about
