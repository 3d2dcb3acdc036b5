"""Windows of token files: what is read, in which order, and training on it."""

import hashlib
import itertools
import pickle
import struct

import lightning
import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from orbits.runs import artefact
from tests.worldmodel.trainings import assert_same_weights
from tests.worldmodel.trainings import trainer as quiet_trainer
from worldmodel.data.shards import ShardData, ShardWindows
from worldmodel.data.text import TextWindows
from worldmodel.models.text import TextModel
from worldmodel.text.shards import adopt
from worldmodel.text.tokenizers import load_tokenizer

pytestmark = pytest.mark.usefixtures("quiet")

SIZES = {"a_val_0.bin": 90, "a_train_1.bin": 70, "a_train_2.bin": 5, "a_train_3.bin": 41}
SMALL = {"n_layer": 1, "n_head": 2, "head_dim": 8, "warmup_steps": 2}


@pytest.fixture
def streams():
    """Return tokens that say where they stand: no two windows of 11 are alike."""
    draw = np.random.default_rng(3)
    return {name: draw.integers(257, size=size).tolist() for name, size in SIZES.items()}


@pytest.fixture
def folder(tmp_path, streams):
    path = tmp_path / "shards"
    path.mkdir()
    for name, tokens in streams.items():
        header = struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253)
        (path / name).write_bytes(header + struct.pack(f"<{len(tokens)}H", *tokens))
    adopt(path, load_tokenizer("bytes"), progress=False)
    return path


def data(folder, **changes):
    options = {"tokenizer": "bytes", "seq_len": 10, "batch_size": 3, "n_val": 4, "n_test": 9}
    return ShardData(str(folder), **options | changes)


def windows(tokens, seq_len=10):
    return [tokens[i : i + seq_len + 1] for i in range(0, len(tokens) - seq_len, seq_len)]


def test_sequential_windows_follow_each_other_through_the_files_and_start_again(folder, streams):
    found = data(folder, order="sequential").sequences("train", 2**62)
    # A file of 5 tokens has no window; the rest of a file that fills none is left out.
    expected = windows(streams["a_train_1.bin"]) + windows(streams["a_train_3.bin"])
    assert len(expected) == 6 + 4
    batch = found.__getitems__(list(range(23)))["tokens"]
    assert batch.dtype == torch.int64
    assert batch.tolist() == (expected * 3)[:23]
    assert found[7]["tokens"].tolist() == expected[7]


def test_random_windows_are_those_of_one_stream_in_memory(tmp_path, streams):
    """With one file they are TextWindows', the same seed giving the same places."""
    tokens = streams["a_val_0.bin"]
    header = struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253)
    (tmp_path / "x.bin").write_bytes(header + struct.pack(f"<{len(tokens)}H", *tokens))
    ours = ShardWindows([(tmp_path / "x.bin", len(tokens))], 257, 10, 2**62, seed=5)
    theirs = TextWindows(np.array(tokens, np.int32), 10, 2**62, seed=5)
    indices = [0, 17, 2**40, 3]
    assert torch.equal(ours.__getitems__(indices)["tokens"], theirs.__getitems__(indices)["tokens"])


def test_random_windows_cover_every_place_of_every_file_alike(folder, streams):
    found = data(folder).sequences("train", 2**62)
    drawn = found.__getitems__(list(range(6000)))["tokens"].tolist()
    places = [
        tuple(tokens[i : i + 11])
        for tokens in (streams["a_train_1.bin"], streams["a_train_3.bin"])
        for i in range(len(tokens) - 10)
    ]
    counts = dict.fromkeys(places, 0)
    for window in drawn:
        counts[tuple(window)] += 1
    expected = 6000 / len(places)
    statistic = sum((n - expected) ** 2 / expected for n in counts.values())
    assert statistic < len(places) + 5 * (2 * len(places)) ** 0.5  # chi-squared, five sigma
    other = data(folder, train_seed=1).sequences("train", 2**62)
    assert other.__getitems__(list(range(50)))["tokens"].tolist() != drawn[:50]


def test_test_windows_follow_the_validation_windows_of_the_held_out_file(folder, streams):
    held_out = windows(streams["a_val_0.bin"])
    assert len(held_out) == 8
    found = data(folder)
    val = torch.cat([batch["tokens"] for batch in found.val_dataloader()])
    test = torch.cat([batch["tokens"] for batch in found.test_dataloader()])
    assert val.tolist() == held_out[:4]
    assert test.tolist() == held_out[4:]
    with pytest.raises(ValueError, match="n_val 8 takes all windows of the held-out file"):
        data(folder, n_val=8).test_dataloader()


def test_a_copy_in_another_process_opens_the_files_itself(folder):
    found = data(folder).sequences("train", 2**62)
    before = found.__getitems__([1, 2])["tokens"]
    travelling = pickle.dumps(found)
    assert len(travelling) < 2000
    assert torch.equal(pickle.loads(travelling).__getitems__([1, 2])["tokens"], before)
    with_workers = iter(data(folder, num_workers=1).train_dataloader())
    alone = iter(data(folder).train_dataloader())
    assert torch.equal(next(with_workers)["tokens"], next(alone)["tokens"])
    del with_workers  # its worker ends here; left to pytest that takes ten seconds


def test_the_record_names_files_by_their_hashes_and_not_the_machine(folder, tmp_path):
    record = data(folder).corpus_record
    assert record["corpus"] == "shards"
    assert record["tokens"] == {"train": 116, "val": 90}
    assert str(tmp_path) not in str(record)
    digests = "".join(artefact.sha256(folder / name) for name in SIZES)
    assert record["sha256"] == hashlib.sha256(digests.encode()).hexdigest()


@pytest.mark.full
def test_damage_is_found_on_request_and_a_foreign_token_when_it_is_read(folder):
    path = folder / "a_train_1.bin"
    content = bytearray(path.read_bytes())
    content[1025] = 7  # the first token becomes one of 7 * 256 and more
    path.write_bytes(content)
    found = data(folder, order="sequential").sequences("train", 2**62)
    found.__getitems__([1])
    with pytest.raises(ValueError, match=r"a_train_1\.bin: token \d+ is beyond the vocabulary"):
        found.__getitems__([0])
    with pytest.raises(ValueError, match=r"a_train_1\.bin: token \d+ is beyond"):
        data(folder, verify=True)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"path": "nowhere"}, r"nowhere has no shards\.json; make shards with python -m"),
        ({"tokenizer": "gpt2"}, "holds tokens of the tokenizer 'bytes', not of 'gpt2'; set data"),
        ({"seq_len": 70}, "no train file has the 71 tokens of a window"),
        ({"seq_len": 0}, "seq_len must be at least 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
    ],
)
def test_bad_arguments_are_named(folder, changes, message):
    if changes.get("tokenizer") == "gpt2":
        pytest.importorskip("tiktoken")
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        data(changes.pop("path", folder), **changes)


def test_an_unfinished_folder_is_refused(folder):
    record = artefact.load_record(folder / "shards.json")
    artefact.save_record(folder / "shards.json", record | {"complete": False})
    with pytest.raises(ValueError, match="is unfinished; run the command that makes it again"):
        data(folder)


def trainer(folder, steps, callbacks=(), **changes):
    options = {"val_check_interval": 100, "use_distributed_sampler": False, **changes}
    return quiet_trainer(folder, steps, callbacks, **options)


def test_a_model_of_another_vocabulary_is_refused_before_training(folder, tmp_path):
    class Other:
        definition, vocab_size, end_of_text = "gpt2", 50257, 50256

    task = TextModel(**SMALL)
    task.tokenizer = Other()
    with pytest.raises(ValueError, match="the model has the tokenizer 'gpt2', its data have 'byte"):
        trainer(tmp_path, 1).fit(task, data(folder))


class _Seen(lightning.Callback):
    """Keep what each training batch was."""

    def __init__(self):
        self.batches = []

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.batches.append(batch["tokens"].tolist())


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("order", ["random", "sequential"])
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path, folder, order, accumulate):
    def fit(steps, *callbacks, **arguments):
        torch.manual_seed(4)
        task, seen = TextModel(optimizer="adamw", **SMALL), _Seen()
        run = trainer(tmp_path, steps, [*callbacks, seen], accumulate_grad_batches=accumulate)
        run.fit(task, data(folder, order=order), weights_only=True, **arguments)
        return task, seen.batches

    keep = ModelCheckpoint(tmp_path, filename="{step}", every_n_train_steps=2, save_top_k=-1)
    whole, batches = fit(4, keep)
    resumed, rest = fit(4, ckpt_path=tmp_path / "step=2.ckpt")
    assert len(batches) == 4 * accumulate
    assert rest == batches[2 * accumulate :]
    assert_same_weights(resumed, whole)


def test_accumulated_batches_are_all_different_and_in_order(tmp_path, folder, streams):
    seen = _Seen()
    run = trainer(tmp_path, 2, [seen], accumulate_grad_batches=2)
    run.fit(TextModel(optimizer="adamw", **SMALL), data(folder, order="sequential", batch_size=2))
    expected = windows(streams["a_train_1.bin"]) + windows(streams["a_train_3.bin"])
    assert list(itertools.chain.from_iterable(seen.batches)) == expected[:8]


def test_a_run_on_other_files_is_not_resumed(tmp_path, folder):
    keep = ModelCheckpoint(tmp_path, filename="half", every_n_train_steps=1)
    trainer(tmp_path, 1, [keep]).fit(TextModel(**SMALL), data(folder))
    record = artefact.load_record(folder / "shards.json")
    del record["shards"][-1]
    artefact.save_record(folder / "shards.json", record)
    half = {"ckpt_path": tmp_path / "half.ckpt", "weights_only": True}
    with pytest.raises(ValueError, match=r"trained on another corpus: shards \(sha256 .*\), not"):
        trainer(tmp_path, 2).fit(TextModel(**SMALL), data(folder), **half)
    trainer(tmp_path, 2).test(TextModel(**SMALL), data(folder), verbose=False, **half)
