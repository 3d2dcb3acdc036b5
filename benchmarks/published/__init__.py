"""The papers' tables as data, and what our runs say about their numbers."""
