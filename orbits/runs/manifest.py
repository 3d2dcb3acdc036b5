"""The provenance record that every result, dataset and prediction file carries."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PACKAGES = (
    "orrery", "torch", "triton", "lightning", "numpy", "numba", "scipy", "sympy", "pyoperon",
    "pysr", "datasets", "tokenizers", "tiktoken", "lm_eval", "neuralforecast", "astropy-iers-data",
)  # fmt: skip


def manifest(
    config: Mapping[str, Any],
    *,
    seed: int | None,
    device: str | None = "cpu",
    inputs: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Describe how a result came to be, as plain JSON data.

    Args:
        config: The resolved configuration that determines the result.
        seed: The seed of this result, or None where nothing is random.
        device: The device that computed it, for example ``cpu`` or ``cuda: NVIDIA H200``; None of
            a run, whose results each have their own.
        inputs: The sha256 of each file that was read, by role.

    Returns:
        argv, config, git hash and dirty flag, package versions, platform, device, seed, UTC time
        and input hashes. Package versions are read from metadata: nothing is imported.
    """
    return {
        "argv": [*_program(), *map(without_machine, sys.argv[1:])],
        "config": dict(config),
        "git": git_state(),
        "versions": versions(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": device,
        "seed": seed,
        "utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "inputs": dict(inputs or {}),
    }


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings with those of groups beside them, by names as of their flags."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _program() -> list[str]:
    """Return the command that started this program, without the machine's paths."""
    path = Path(sys.argv[0])
    if path.name == "__main__.py":
        return ["python", "-m", path.parent.name]
    return [path.name]


def without_machine(argument: str) -> str:
    """Return a command-line argument with the folders of an absolute path left out."""
    option, equals, value = argument.rpartition("=")
    parts = (Path(x).name if Path(x).is_absolute() else x for x in value.split(","))
    return f"{option}{equals}{','.join(parts)}"


@functools.cache
def versions() -> dict[str, str]:
    """Return the installed versions of Python and of the packages that shape a result."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def git_state() -> dict[str, Any]:
    """Return the commit of the checkout and whether tracked files differ from it."""
    root = Path(__file__).parent
    try:
        commit = _git(root, "rev-parse", "HEAD")
        dirty = bool(_git(root, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return {"commit": None, "dirty": None}
    return {"commit": commit, "dirty": dirty}


def _git(root: Path, *arguments: str) -> str:
    result = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=10
    )
    return result.stdout.strip()
