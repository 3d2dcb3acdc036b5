"""What command lines share: bad input is one line."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn


class OneLineParser(argparse.ArgumentParser):
    """A parser whose errors are one line on stderr, without the usage, and exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Print the message and exit."""
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)
