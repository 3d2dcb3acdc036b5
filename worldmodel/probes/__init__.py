"""Read-outs and oracles that a trained force head is compared with."""
