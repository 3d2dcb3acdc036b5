"""Controls that a trained model is compared with: read-outs, look-up tables, regressions."""
