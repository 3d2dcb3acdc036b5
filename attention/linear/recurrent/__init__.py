"""Recurrent networks whose state is as wide as the model."""
