"""Ctrl-C while a command is still importing: one line in place of a traceback.

Programs import it before anything that takes time; once it has begun, a command answers for itself
(:func:`orbits.runs.cli.one_line_errors`).
"""

from __future__ import annotations

import sys
from types import TracebackType


def _say(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("stopped", file=sys.stderr)
        sys.exit(130)
    sys.__excepthook__(kind, error, traceback)


sys.excepthook = _say
