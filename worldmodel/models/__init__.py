"""Models: a GPT with any attention, its embeddings and heads, and how they are trained."""
