"""``python -m symreg import-llm``: convert public answers of language models."""

from __future__ import annotations

import argparse

from symreg.predictions import llm


def main(options: argparse.Namespace) -> None:
    """Write prediction files from the public answers of language models."""
    for path in llm.convert(options.folder, options.out):
        print(path)
