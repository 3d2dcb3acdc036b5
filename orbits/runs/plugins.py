"""Plug-ins: laws, attention variants, linear mixers, engines, studies and corpora from outside.

All kinds have one way in, the entry points of installed distributions: the groups ``orrery.law``,
``orrery.attention``, ``orrery.mixer``, ``orrery.engine``, ``orrery.study`` and ``orrery.corpus``,
which each catalogue reads through :mod:`importlib.metadata`. A file that a user names by
``--plugin`` becomes a distribution of this process whose entry points are what the file defines:
``LAW``, ``ATTENTION``, ``MIXER``, ``ENGINE``, ``STUDY``, ``CORPUS``, or a tuple of them. A
catalogue reads it when it is first used, and imports it then.

Files are told to worker processes by an environment variable. Their contents are part of the
addresses of cells, so that no result is taken for that of another definition.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import os
import re
import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from importlib import metadata
from importlib.machinery import ModuleSpec
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

GROUPS = {
    "LAW": "orrery.law",
    "ATTENTION": "orrery.attention",
    "MIXER": "orrery.mixer",
    "ENGINE": "orrery.engine",
    "STUDY": "orrery.study",
    "CORPUS": "orrery.corpus",
}
"""Constants that a plug-in file may define, and the group of entry points that each joins."""
FILES = "ORRERY_PLUGINS"
"""The environment variable that names the files, as PATH does."""
_PREFIX = "orrery_plugin_"


class PluginFile(metadata.Distribution):
    """A file as a distribution whose entry points are what the file defines.

    Args:
        path: The file.
        defined: Names of :data:`GROUPS` that it defines.
    """

    def __init__(self, path: Path, defined: Sequence[str]) -> None:
        self.path, self.defined = path, defined
        self.sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        self.module = f"{_PREFIX}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"

    def read_text(self, filename: str) -> str | None:
        """Return the contents of a file of metadata, or None."""
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: {self.module}\nVersion: 0\n"
        if filename == "entry_points.txt":
            each = [f"[{GROUPS[x]}]\n{self.path.stem} = {self.module}:{x}" for x in self.defined]
            return "\n".join(each)
        return None

    def locate_file(self, path: Any) -> Path:
        """Return the path of a file of the distribution."""
        return self.path.parent / path


class _Finder(metadata.DistributionFinder):
    """Finder of the modules and the metadata of plug-in files."""

    def __init__(self) -> None:
        self.files: dict[str, PluginFile] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        file = self.files.get(name)
        return None if file is None else importlib.util.spec_from_file_location(name, file.path)

    def find_distributions(self, context: Any = None) -> Iterator[PluginFile]:
        wanted = getattr(context, "name", None)
        return (x for x in self.files.values() if wanted in (None, x.module))


_FINDER = _Finder()


def add(path: str | Path) -> PluginFile:
    """Add a file of plug-ins, before the catalogues that it adds to are first used.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not Python, defines nothing of :data:`GROUPS`, has the name of another
            or comes too late.
    """
    path = Path(path).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; --plugin names a file of Python")
    if not re.fullmatch(r"[\w.-]+", path.stem):
        raise ValueError(f"{path}: a plug-in's name has letters, digits, '_', '-' and '.'; rename")
    if os.pathsep in str(path):  # workers get the paths as one list
        raise ValueError(f"{path}: {os.pathsep!r} separates paths; rename the file or its folder")
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{path}: not Python: {error}") from None
    defined = [name for name in GROUPS if name in _assigned(tree)]
    if not defined:
        raise ValueError(f"{path}: defines none of {', '.join(GROUPS)}")
    file = PluginFile(path, defined)
    other = next((x for x in _FINDER.files.values() if x.path.stem == path.stem), file)
    if other.path != path:
        raise ValueError(f"{path}: {other.path} has the same name; rename one of them")
    if file.module not in _FINDER.files:
        if {"ATTENTION", "MIXER"} & {*defined} and "attention.catalogue" in sys.modules:
            raise ValueError(f"{path}: add it before attention is imported")
        _FINDER.files[file.module] = file
        if _FINDER not in sys.meta_path:
            sys.meta_path.append(_FINDER)
        os.environ[FILES] = os.pathsep.join(str(x.path) for x in _FINDER.files.values())
        installed.cache_clear()
    return _FINDER.files[file.module]


def _assigned(tree: ast.Module) -> set[str]:
    """Return the names that a module assigns or imports."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {each.asname or each.name for each in node.names}
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def restore() -> None:
    """Add the files that the environment names, as in a worker process."""
    for path in filter(None, os.environ.get(FILES, "").split(os.pathsep)):
        try:
            add(path)
        except (OSError, ValueError) as error:  # other commands do without it
            print(f"plug-in left out: {error} ({FILES})", file=sys.stderr)


def addresses() -> dict[str, str]:
    """Return the part of a cell's address that the files decide: their names and contents."""
    return {x.path.name: x.sha256 for x in _FINDER.files.values()}


def flags() -> list[str]:
    """Return the flags that add the same files to another command."""
    paths = [x.path for x in _FINDER.files.values()]
    here = Path.cwd()
    near = (str(x.relative_to(here) if x.is_relative_to(here) else x) for x in paths)
    return [f"--plugin {shlex.quote(path)}" for path in near]


laws_by_file: dict[str, str] = {}
"""Plug-ins whose files a command line gave as its law, by the name of the law."""


@functools.cache
def installed(group: str) -> tuple[metadata.EntryPoint, ...]:
    """Return the entry points of a group, each name once; none is imported."""
    found = {point.name: point for point in metadata.entry_points(group=group)}
    return tuple(found[name] for name in sorted(found))


def origin(point: metadata.EntryPoint) -> str:
    """Return the file or the package of an entry point, for messages."""
    file = _FINDER.files.get(point.module)
    return point.value if file is None else str(file.path)


def objects(point: metadata.EntryPoint, kind: type | None = None) -> tuple[list[Any], str | None]:
    """Return an entry point's definitions and None, or no definitions and its fault in one line.

    Args:
        point: The entry point.
        kind: The class of what it must define; None for any.
    """
    try:
        found = point.load()
        several = list(found) if isinstance(found, list | tuple) else [found]
        for each in several:
            if kind is not None and not isinstance(each, kind):
                raise ValueError(f"{point.attr} must be a {kind.__name__}, got {each!r:.60}")
    except (Exception, SystemExit) as error:  # what a plug-in does wrong is said of it alone
        what = (str(error) or type(error).__name__).splitlines()[0]
        named = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        return [], f"{origin(point)}: {named}{what}"
    return several, None


def definitions(
    what: str, taken: Collection[str], kind: type | None = None, needs: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the plug-ins of a kind define, by name, and by plug-in the fault of each.

    Args:
        what: The constant of :data:`GROUPS`.
        taken: Names that are given already.
        kind: The class of what it must define; None for any.
        needs: Attributes that it must have.
    """
    found: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for point in installed(GROUPS[what]):
        several, fault = objects(point, kind)
        for each in several:
            if lacks := [x for x in needs if not hasattr(each, x)]:
                fault = f"{origin(point)}: {what} has no {', '.join(lacks)}"
            elif each.name in taken or each.name in found:
                there = f"{what.lower()} {each.name!r} is there already"
                fault = f"{origin(point)}: {there}; name it otherwise"
            else:
                found[each.name] = each
        if fault is not None:
            faults[point.name] = fault
            own = point.module in _FINDER.files and point.name not in laws_by_file.values()
            if own and parent_process() is None:  # asked for by name, and not refused by it
                print(f"left out: {fault}", file=sys.stderr)
    return found, faults


def take(arguments: Sequence[str]) -> list[str]:
    """Add the files that a command line names, and return the line without them.

    ``--plugin FILE`` goes; a law that is named by its file, ``--law FILE.py``, becomes its name.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It defines no plug-in, or not one law.
    """
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag == "--plugin":
            value = value if equals else next(words, "")
            if not value:
                raise ValueError("--plugin needs a file of Python")
            add(value)
        elif flag.startswith("--") and flag.rpartition(".")[2].removeprefix("--") == "law":
            given = value if equals else next(words, None)
            rest += [flag] if given is None else [f"{flag}={_law(given)}"]
        else:
            rest.append(word)
    return rest


def _law(text: str) -> str:
    """Return the name of a law that a user typed as its name, its formula or its file."""
    if not text.endswith(".py"):
        return text
    file = add(text)
    if "LAW" not in file.defined:
        raise ValueError(f"{file.path}: defines no LAW")
    point = next(x for x in file.entry_points if x.name == file.path.stem and x.attr == "LAW")
    found, fault = objects(point)
    if fault is not None:
        raise ValueError(fault)
    if len(found) != 1:
        raise ValueError(f"{file.path}: defines {len(found)} laws; name one, and give --plugin")
    name = getattr(found[0], "name", None)
    if not isinstance(name, str):
        raise ValueError(f"{file.path}: LAW must be a Law, got {found[0]!r:.60}")
    laws_by_file[name] = file.path.stem
    return name
