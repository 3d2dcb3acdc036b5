"""Windows with one token replaced: that token, in every split, and nothing else."""

import numpy as np
import pytest
import torch

from benchmarks.language.masked_text import MaskedTextData
from worldmodel.data.text import TextData

L = 12
END = 256
"""The end-of-text token of the byte tokeniser."""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "squares.txt"
    path.write_text(" ".join(f"{i}^2 = {i * i};" for i in range(500)), "utf-8")
    return path


def both(file, mask_at, **changes):
    settings = {
        "path": str(file),
        "seq_len": L,
        "batch_size": 4,
        "n_val": 5,
        "n_test": 6,
        **changes,
    }
    return MaskedTextData(mask_at=mask_at, **settings), TextData(**settings)


@pytest.mark.parametrize("split", ["train", "val", "test"])
@pytest.mark.parametrize("place", [0, 5, L - 1])
def test_one_place_is_the_end_of_text_and_the_rest_is_the_text(file, split, place):
    masked, plain = both(file, place, train_seed=3)
    chosen = [4, 0, 2]
    ours, theirs = (
        data.sequences(split, 5).__getitems__(chosen)["tokens"] for data in (masked, plain)
    )
    assert ours.shape == (3, L + 1)
    assert ours.dtype == torch.int64
    assert (ours[:, place] == END).all()
    others = [i for i in range(L + 1) if i != place]
    assert torch.equal(ours[:, others], theirs[:, others])
    assert (theirs[:, place] != END).any(), "something was replaced"
    one = masked.sequences(split, 5)[4]["tokens"]
    assert torch.equal(one, ours[0])


def test_the_text_itself_stays_as_it_is(file):
    masked, plain = both(file, 5)
    before = {split: stream.copy() for split, stream in masked.streams.items()}
    for split in before:
        masked.sequences(split, 5).as_batch()
        assert np.array_equal(masked.streams[split], before[split])
        assert np.array_equal(masked.streams[split], plain.streams[split])
    assert masked.corpus_record == plain.corpus_record


def test_loaders_have_the_sizes_that_were_given(file):
    masked, plain = both(file, 2, eval_batch_size=3, train_seed=7)
    for loaders in (
        (masked.train_dataloader(), plain.train_dataloader()),
        (masked.val_dataloader(), plain.val_dataloader()),
        (masked.test_dataloader(), plain.test_dataloader()),
    ):
        ours, theirs = (next(iter(loader))["tokens"] for loader in loaders)
        assert ours.shape == theirs.shape
        assert (ours[:, 2] == END).all()
        theirs[:, 2] = END
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("place", [-1, L, 100])
def test_a_place_outside_the_window_is_refused_before_a_text_is_read(place):
    with pytest.raises(ValueError, match=rf"mask_at must be in \[0, {L}\), got {place}"):
        MaskedTextData(mask_at=place, path="nowhere", seq_len=L)


def test_what_was_given_is_saved_with_the_place(file):
    masked, plain = both(file, 5, train_seed=3)
    assert dict(masked.hparams) == {**plain.hparams, "mask_at": 5}
