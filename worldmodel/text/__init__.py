"""Text: tokenisers, corpora and files of tokens. No torch."""
