"""State of the Julia that pysr needs, and proof that a search would reach it.

``import pysr`` starts Julia, and where Julia is missing it downloads one or hangs. So a child
process is asked first.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

from symreg.engines import Status

PROBE = Path(__file__).with_name("julia_probe.py")


@functools.cache
def julia_status(timeout: float = 60.0) -> Status:
    """Ask a child process, once per process, whether Julia and PySR's packages are there."""
    # The program is handed over as text: run as a file, it would have this folder, with its
    # pysr.py, on its path.
    try:
        child = subprocess.run(
            [sys.executable, "-c", PROBE.read_text(encoding="utf-8")],
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
        )
        state, reason = json.loads(child.stdout.strip().splitlines()[-1])
        return Status(state, " ".join(str(reason).split()))
    except subprocess.TimeoutExpired:
        return Status("unknown", f"the probe for Julia took more than {timeout:g} s")
    except (OSError, ValueError, IndexError, TypeError):
        return Status("unknown", 'the probe for Julia failed; to see why: python -c "import pysr"')


def require_juliacall() -> None:
    """Raise a RuntimeError unless ``import juliacall`` gives the installed package.

    A stand-in for it, which tests of the adapter use, answers without searching: its answers must
    never become a result.
    """
    installed = Path(str(distribution("juliacall").locate_file("juliacall/__init__.py")))
    try:
        spec = importlib.util.find_spec("juliacall")
    except ValueError:  # a module made by hand has no spec
        spec = None
    if spec is None or spec.origin is None or Path(spec.origin).resolve() != installed.resolve():
        raise RuntimeError("juliacall is not the installed package, so this would be no search")
