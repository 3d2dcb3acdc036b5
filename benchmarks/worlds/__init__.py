"""Worlds whose law must be inferred from what is seen: one study."""
