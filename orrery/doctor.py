"""``orrery doctor``: the parts that run on this machine, and how to get the rest."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orbits.runs import output
from orbits.runs.cli import OneLineParser, one_line_errors
from orrery import __version__

RECORD = Path("runs") / "pysr-search.json"
GPU_RECORD = Path("runs") / "gpu-check.json"
CPU_TORCH = "python -m pip install torch --index-url https://download.pytorch.org/whl/cpu"
_EXTRA = re.compile(r"(?P<package>[\w.-]+).*;.*extra == ['\"](?P<extra>[\w-]+)['\"]")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the parts that run here; with ``--pysr``, make one search and keep its record."""
    parser = OneLineParser(
        prog="orrery doctor",
        description="Say what runs on this machine, and how to get the rest. The exit code is 0 "
        "whatever is missing; with --pysr it is 2 where PySR has no Julia, with --gpu 2 where "
        "there is no GPU and 1 where a kernel computes something else.",
    )
    output.offer(parser, "the packages that extras lack, or the path of a record")
    parser.add_argument(
        "--pysr",
        action="store_true",
        help="make one search with PySR as it was published, in minutes, and write its record",
    )
    parser.add_argument(
        "--gpu",
        action="store_true",
        help="check the attention kernels on the GPU, time them for two minutes, and write a "
        "record that can be sent to others",
    )
    parser.add_argument(
        "--cpu", action="store_true", help="with --gpu: rehearse it in small on the CPU"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help=f"file for the record of --pysr (default: {RECORD}) or --gpu (default: {GPU_RECORD})",
    )
    options = parser.parse_args(arguments)
    silent = options.json or options.quiet
    with one_line_errors(RuntimeError, resumes=False):
        if options.cpu and not options.gpu:
            raise ValueError("--cpu: rehearses --gpu, which is missing")
        if options.pysr and options.gpu:
            raise ValueError("--pysr and --gpu make a record each; ask for one at a time")
        if options.gpu:
            module = importlib.import_module("orrery.gpu_check")
            made = module.check_and_keep(
                record := options.out or GPU_RECORD, rehearse=options.cpu, quiet=silent
            )
            output.say(options, lambda: module.text(made), lambda: made, lambda: str(record))
            sys.exit(0 if made["passed"] else 1)
        if options.pysr:
            module = importlib.import_module("orrery.live_search")
            made = module.search_and_keep(record := options.out or RECORD, quiet=silent)
            output.say(options, lambda: module.text(made), lambda: made, lambda: str(record))
        elif options.out is not None:
            raise ValueError(
                f"--out {options.out}: without --pysr or --gpu there is nothing to write"
            )
        else:
            found = examine()
            output.say(options, lambda: text(found), lambda: found, lambda: lacking(found))


def examine() -> dict[str, Any]:
    """Return the findings about this machine, as plain data."""
    return {
        "orrery": __version__,
        "python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "cores": _cores(),
        "disk_free_gb": round(shutil.disk_usage(Path.cwd()).free / 1e9, 1),
        **_torch(),
        "triton": _version("triton"),
        "engines": _engines(),
        "extras": extras(importlib.metadata.requires("orrery") or []) if _version("orrery") else {},
    }


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _torch() -> dict[str, Any]:
    """Return PyTorch's build and threads, the GPUs it sees, and the backend of each attention.

    PyTorch that does not import, for lack of a driver's library say, is an answer too.
    """
    try:
        import torch
    except Exception as error:  # whatever the import of a broken installation raises
        reason = " ".join(str(error).split())
        return {"torch": {"version": _version("torch"), "error": reason}, "attention": {}}
    gpus = []
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            known = torch.cuda.get_device_properties(number)
            memory = round(known.total_memory / 2**30)
            capability = f"{known.major}.{known.minor}"
            gpus.append({"name": known.name, "capability": capability, "memory_gib": memory})
    build = {
        "version": torch.__version__,
        "build": f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU",
        "threads": torch.get_num_threads(),
    }
    return {"torch": build, "gpus": gpus, "attention": _attention("cuda" if gpus else "cpu")}


def _attention(device: str) -> dict[str, Any]:
    """Return the backend that ``auto`` takes for each variant, and why Triton takes no part."""
    import torch

    from attention import explain, names

    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    query = torch.empty(1, 1, 64, 64, device=device, dtype=dtype)
    served: dict[str, list[str]] = {}
    for name in names():
        try:
            backend = explain(name, query).chosen
        except ValueError:  # its formula has the length in it, which is an argument
            backend = explain(name, query, length=64).chosen
        served.setdefault(backend, []).append(name)
    refused = explain("lssar", query).refused.get("triton")
    return {"device": device, "backends": served, "triton_lssar": refused or "serves it"}


def _engines() -> dict[str, dict[str, str]]:
    from symreg import engines

    states = {name: engines.get(name).status() for name in engines.names()}
    return {name: {"state": x.state, "reason": x.reason} for name, x in states.items()}


def extras(requirements: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the packages of each extra that are not installed, and the command for them."""
    packages: dict[str, set[str]] = {}
    for requirement in requirements:
        if match := _EXTRA.match(requirement):
            packages.setdefault(match["extra"], set()).add(match["package"])
    return {
        extra: {
            "missing": sorted(name for name in names if _version(name) is None),
            "command": f"python -m pip install -e '.[{extra}]'",
        }
        for extra, names in sorted(packages.items())
    }


def lacking(found: Mapping[str, Any]) -> str:
    """Return the packages of extras that are not installed, a line each."""
    return "\n".join(
        sorted({name for each in found["extras"].values() for name in each["missing"]})
    )


def text(found: Mapping[str, Any]) -> str:
    """Return the findings as lines."""
    torch, serving = found["torch"], found["attention"]
    lines = [
        ("orrery", found["orrery"]),
        ("python", found["python"]),
        ("cores", str(found["cores"])),
        ("disk", f"{found['disk_free_gb']} GB free in this folder"),
    ]
    if "error" in torch:
        lines.append(("torch", f"does not import: {torch['error']}; {CPU_TORCH}"))
    else:
        build = f"{torch['version']}, {torch['build']} build, {torch['threads']} threads"
        lines.append(("torch", build))
        for gpu in found["gpus"]:
            words = f"{gpu['name']}, capability {gpu['capability']}, {gpu['memory_gib']} GiB"
            lines.append(("GPU", words))
        if not found["gpus"]:
            lines.append(("GPU", "none that PyTorch can use; everything runs on the CPU"))
    lines.append(("triton", found["triton"] or "not installed; it exists for Linux alone"))
    if serving:
        counts = ", ".join(f"{len(names)} by {by}" for by, names in serving["backends"].items())
        lines.append(("attention", f"variants on {serving['device']}: {counts}"))
        lines.append(("", f"fused kernel of lssar: {serving['triton_lssar']}"))
    for name, engine in found["engines"].items():
        lines.append((f"engine {name}", f"{engine['state']}: {engine['reason']}"))
    if not found["extras"]:
        lines.append(("extras", "orrery is not installed; in its folder: python -m pip install ."))
    for name, extra in found["extras"].items():
        missing = ", ".join(extra["missing"])
        state = f"lacks {missing}; {extra['command']}" if missing else "installed"
        lines.append((f"extra {name}", state))
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label:<{width}}  {words}" for label, words in lines)


if __name__ == "__main__":
    main()
