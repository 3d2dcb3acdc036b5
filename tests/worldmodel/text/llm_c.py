"""Files of tokens as llm.c writes them."""

import struct


def by_hand(tokens, magic=20240520, version=1, n=None, letter="H"):
    """Return a file as llm.c's dev/data/data_common.py writes it."""
    header = struct.pack("<256i", magic, version, len(tokens) if n is None else n, *[0] * 253)
    return header + struct.pack(f"<{len(tokens)}{letter}", *tokens)
