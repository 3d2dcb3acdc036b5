"""Keys of the command line, refused where they are misspelt before anything slow is imported.

What a model, its data or the trainer takes is read from their sources, which are not imported: that
takes seconds. A key that is near none of them is left to Lightning.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from orbits.runs.choices import near

GROUPS = (
    "model",
    "data",
    "trainer",
    "optimizer",
    "lr_scheduler",
    "save_last_step",
    "stop_between_steps",
)
"""What a flag with a dot in it begins with."""
PLAIN = (
    *("config", "help", "help-all", "print_config", "seed_everything", *GROUPS),
    *("ckpt_path", "pretrained", "return_predictions", "verbose", "weights_only"),
)
"""Flags without a dot, of all commands of Lightning."""
FOLDERS = {"model": "models", "data": "data"}
"""Where the classes of a group lie."""
NEAR = 0.75
"""Least similarity, as difflib has it, of a misspelt key and the one that was meant."""
ARGUMENTS, OURS = "init_args", "worldmodel."


def check(arguments: Sequence[str], classes: Mapping[str, str]) -> None:
    """Refuse a flag whose group there is not, or whose key is a misspelling of another.

    Args:
        arguments: The words of a command line.
        classes: Names of classes that were chosen, by group; what one from elsewhere takes is not
            known.

    Raises:
        ValueError: There is one; the message names what may have been meant.
    """
    for word in arguments:
        key = word.removeprefix("--").partition("=")[0].rstrip("+")
        group, dot, rest = key.partition(".")
        if not word.startswith("--") or key in PLAIN:
            continue
        if not dot:
            _refuse(key, [f"{x}.{key}" for x in FOLDERS if key in _known(x)] or near(key, PLAIN))
        elif group not in GROUPS:
            _refuse(key, [f"{each}.{rest}" for each in near(group, GROUPS)], always=True)
        elif "." not in (chosen := classes.get(group, "")) or chosen.startswith(OURS):
            name = rest.removeprefix(f"{ARGUMENTS}.").partition(".")[0]
            if name not in (known := _known(group)):
                _refuse(key, [f"{group}.{each}" for each in near(name, sorted(known), NEAR)])


def _refuse(key: str, meant: Sequence[str], always: bool = False) -> None:
    """Refuse a key, if it is known which one was meant or it cannot be any."""
    if meant or always:
        hint = f"; did you mean --{meant[0]}?" if meant else ";"
        begin = f" keys begin with {', '.join(GROUPS)}" if always else ""
        raise ValueError(f"unknown key {key!r}{hint}{begin}")


@functools.cache
def _known(group: str) -> frozenset[str]:
    """Return the arguments of all classes of a group; none of a group that has no such sources."""
    found = {name for path in _sources(group) for name in _parameters(path)}
    return frozenset({*found, ARGUMENTS, "class_path", "dict_kwargs", "help"} if found else ())


def _sources(group: str) -> Iterator[Path]:
    if group in FOLDERS:
        yield from Path(__file__).with_name(FOLDERS[group]).glob("*.py")
    lightning = importlib.util.find_spec("lightning")  # found, not imported
    if group == "trainer" and lightning is not None and lightning.origin is not None:
        yield Path(lightning.origin).with_name("pytorch") / "trainer" / "trainer.py"


def _parameters(path: Path) -> Iterator[str]:
    """Yield the parameters of every class that a file defines."""
    for each in ast.parse(path.read_text(encoding="utf-8")).body:
        for member in each.body if isinstance(each, ast.ClassDef) else ():
            if isinstance(member, ast.FunctionDef) and member.name == "__init__":
                given = (*member.args.args[1:], *member.args.kwonlyargs)
                yield from (argument.arg for argument in given)
