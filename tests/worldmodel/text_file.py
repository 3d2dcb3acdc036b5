"""A small text as the data of a language model."""

from worldmodel.data.text import TextData


def data(file, **changes):
    """Return windows of 32 tokens of a file."""
    return TextData(**{"path": str(file), "seq_len": 32, "batch_size": 8, "n_val": 4} | changes)
