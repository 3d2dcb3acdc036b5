"""The study of why fine-tuning on few labels fails for some backbones."""
