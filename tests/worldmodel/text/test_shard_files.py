"""Files of tokens: the format of llm.c, byte for byte."""

import numpy as np
import pytest

from orbits.runs import artefact
from tests.worldmodel.text.llm_c import by_hand
from worldmodel.text.shards import check_tokens, read_shard, write_shard


def test_files_are_those_of_llm_c_byte_for_byte(tmp_path):
    tokens = np.array([50256, 1, 2, 50255, 0])
    shard = write_shard(tmp_path / "a.bin", tokens, 50257)
    assert (tmp_path / "a.bin").read_bytes() == by_hand(tokens.tolist())
    assert shard["bytes"] == 1024 + 2 * 5
    assert shard["sha256"] == artefact.sha256(tmp_path / "a.bin")
    np.testing.assert_array_equal(read_shard(tmp_path / "a.bin"), tokens)


def test_large_vocabularies_take_the_format_of_llama_3(tmp_path):
    tokens = [128000, 7, 70000]
    write_shard(tmp_path / "a.bin", np.array(tokens), 128256)
    expected = by_hand(tokens, 20240801, 7, letter="I")
    assert (tmp_path / "a.bin").read_bytes() == expected
    assert read_shard(tmp_path / "a.bin").tolist() == tokens


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (by_hand([1, 2], magic=20240522), r"its magic number is not 20240520 or 20240801"),
        (by_hand([1, 2], version=2), "version 2, this code reads 1"),
        (by_hand([1, 2], n=3), "1028 bytes, but 3 tokens take 1030; it is truncated"),
        (by_hand([1, 2], n=1), "1028 bytes, but 1 tokens take 1026"),
        (by_hand([1, 2], magic=20240801, version=7), "1028 bytes, but 2 tokens take 1032"),
        (by_hand([]), "truncated or damaged"),
        (b"short", "no file of tokens"),
    ],
)
def test_what_is_no_file_of_tokens_is_refused_by_name(tmp_path, content, message):
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(ValueError, match=rf"x\.bin: .*{message}"):
        read_shard(tmp_path / "x.bin")


@pytest.mark.parametrize("token", [-1, 257])
def test_a_token_beyond_the_vocabulary_is_not_written(tmp_path, token):
    with pytest.raises(ValueError, match=f"token {token} is beyond the vocabulary of 257"):
        write_shard(tmp_path / "x.bin", np.array([0, token, 3]), 257)
    assert not (tmp_path / "x.bin").exists()
    check_tokens("x.bin", np.array([0, 256]), 257)


def test_more_tokens_than_a_header_can_say_are_not_written(tmp_path):
    many = np.broadcast_to(np.uint16(0), 2**31)  # one number in memory
    with pytest.raises(ValueError, match=r"2147483648 tokens, but a file holds at most 2147483647"):
        write_shard(tmp_path / "x.bin", many, 257)
    assert not (tmp_path / "x.bin").exists()
