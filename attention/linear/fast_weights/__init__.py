"""Mixers whose state is the weights of a small model, which learns while it reads."""
