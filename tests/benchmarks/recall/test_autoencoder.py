"""MAD's compression decodes every token from the last state alone."""

import numpy as np
import pytest
import torch

from benchmarks.recall.skills.autoencoder import CompressionModel


@pytest.fixture
def autoencoder():
    torch.manual_seed(0)
    task = CompressionModel(5, n_layer=1, n_head=2, head_dim=4).double().eval()
    torch.nn.init.normal_(task.embedding.weight)
    return task


def test_compression_decodes_the_last_state_with_the_code_of_each_place(autoencoder):
    tokens = torch.tensor([[0, 3, 1, 2, 4], [2, 2, 0, 1, 4]])
    logits = autoencoder({"tokens": tokens})
    last = autoencoder.gpt(autoencoder.embedding(tokens) * 8**0.5)[:, -1]
    for place in range(5):
        angles = [place / 10_000 ** (channel / 8) for channel in range(0, 8, 2)]
        code = torch.tensor([f(a) for a in angles for f in (np.sin, np.cos)])
        torch.testing.assert_close(
            logits[:, place], autoencoder.decoder(last + code), rtol=1e-5, atol=1e-6
        )
    asked = torch.tensor([[True, False, True, True, True], [False] * 4 + [True]])
    torch.testing.assert_close(autoencoder.answers({"tokens": tokens}, asked), logits[asked])


def test_compression_answers_an_early_place_from_later_tokens(autoencoder):
    tokens = torch.tensor([[0, 3, 1, 2, 4]])
    changed = tokens.clone()
    changed[0, 3] = 1
    first, other = (autoencoder({"tokens": t})[0, 0] for t in (tokens, changed))
    assert (first - other).abs().max() > 1e-4, "all of the row must fit into the last state"
