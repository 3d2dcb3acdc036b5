"""Read-outs and oracles that a trained model is compared with."""
