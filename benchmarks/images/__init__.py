"""Image classification by encoders of any attention that can read ahead."""
