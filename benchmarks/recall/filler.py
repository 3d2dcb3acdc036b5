"""Filler around a pass key, that of the published prompt (Mohtashami and Jaggi, 2023)."""

GARBAGE = (
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
)


def filler(n_characters: int) -> str:
    """Return filler of a length."""
    sentence = GARBAGE + " "
    return (sentence * (n_characters // len(sentence) + 1))[:n_characters]
