"""In-context law inference against steps, width, sequences and laws of the training."""
