"""The filler of the published prompt and the lengths, for both forms of pass keys."""

from __future__ import annotations

from collections.abc import Sequence

MULTIPLES = (1, 1.5, 2, 3, 4, 8, 16)
"""Lengths of a test, as multiples of the training length."""

GARBAGE = (
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
)
"""Filler text of Mohtashami and Jaggi (2023)."""


def check_multiples(multiples: Sequence[float]) -> None:
    """Refuse lengths that are not among :data:`MULTIPLES`."""
    for multiple in multiples:
        if multiple not in MULTIPLES:
            raise ValueError(f"multiples must be among {MULTIPLES}, got {multiple:g}")


def filler(n_characters: int) -> str:
    """Return filler of a length."""
    sentence = GARBAGE + " "
    return (sentence * (n_characters // len(sentence) + 1))[:n_characters]
