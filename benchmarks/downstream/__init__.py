"""Zero-shot answers of language models: tasks of lm-evaluation-harness, and SummScreen."""

from benchmarks.downstream.evaluation import check, evaluate

__all__ = ["check", "evaluate"]
