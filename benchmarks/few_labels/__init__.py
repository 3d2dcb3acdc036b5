"""Why fine-tuning on few labels fails for some backbones: one study."""
