"""Probes of predicted forces: fine-tuned heads for magnitudes and vectors."""
