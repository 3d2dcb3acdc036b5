"""The papers' tables as data, and verdicts on their numbers by our runs."""
