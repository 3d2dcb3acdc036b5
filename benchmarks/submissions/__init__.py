"""Predictions of models from outside, checked and examined here."""
