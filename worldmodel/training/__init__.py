"""Parts of a training with Lightning: callbacks, signal handling, checkpoint files."""
