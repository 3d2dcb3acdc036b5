"""What command lines share: bad input is one line."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import NoReturn


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line on stderr, without the usage, and exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit."""
        _exit(f"error: {message}", 2)


@contextlib.contextmanager
def one_line_errors(*failures: type[Exception], resumes: bool = True) -> Iterator[None]:
    """Let expected errors be one line on stderr, in place of a traceback.

    Bad input (a ValueError or an OSError) exits with 2, an interruption with 130, memory that
    ran out with 1.

    Args:
        *failures: Errors of the work itself; they exit with 1.
        resumes: Whether the same command goes on where it was interrupted, which is then said.
    """
    try:
        yield
    except (ValueError, OSError) as error:
        _exit(f"error: {error}", 2)
    except KeyboardInterrupt:
        hint = "; run the same command again to resume" if resumes else ""
        _exit(f"stopped{hint}", 130)
    except MemoryError as error:
        _exit(f"error: out of memory: {error}", 1)
    except failures as error:
        _exit(f"error: {error}", 1)


def _exit(message: str, code: int) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(code)
