"""Zero-shot evaluation of language models: tasks of lm-evaluation-harness, and SummScreen."""
