"""What a law change does inside a model: residuals exchanged between worlds."""
