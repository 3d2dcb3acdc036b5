"""Published corpora and local tables, on small files in the format of the hub."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from worldmodel.data.text import TextData
from worldmodel.text import corpora, documents
from worldmodel.text.corpus import open_corpus, read_corpus

datasets = pytest.importorskip("datasets")
ROOT = Path(__file__).parents[3]

FINEWEB = ("text", "id", "dump", "url", "date", "file_path", "language", "language_score")
"""Columns of HuggingFaceFW/fineweb, with token_count behind them."""
COLUMNS = {
    "fineweb": (*FINEWEB, "token_count"),
    "fineweb_edu": (
        "text", "id", "dump", "url", "file_path", "language", "language_score", "token_count",
        "score", "int_score",
    ),
    "openwebtext2": ("text",),
}  # fmt: skip
"""Columns of the hub's training corpora."""
WIKITEXT = [
    "", " = Valkyria Chronicles III = \n", "", " It is a game . \n", "", " = = Plot = = \n", "",
    " The 4 @-@ th unit . \n", "", " = A = \n", "", " a = b = c is no title . \n",
    " = = = Deeper = = = \n", "", " = Robert <unk> ( actor ) = \n", "", " He acted . \n",
]  # fmt: skip
ARTICLES = ["".join(WIKITEXT[1:9]), "".join(WIKITEXT[9:14]), "".join(WIKITEXT[14:])]


def write_parquet(path, texts, columns=("text",)):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [dict.fromkeys(columns, str(i)) | {"text": text} for i, text in enumerate(texts)]
    datasets.Dataset.from_list(rows).to_parquet(path)


def write_jsonl(path, texts, column="text"):
    path.write_text(
        "".join(json.dumps({column: t, "year": 0, "meta": {"a": 1}}) + "\n" for t in texts), "utf-8"
    )


def texts_of(n):
    return [f"document {i} " * (1 + i % 5) for i in range(n)]


def test_every_file_is_a_corpus_of_its_name():
    assert corpora.names() == ("fineweb", "fineweb_edu", "lambada", "openwebtext2", "wikitext103")
    for name in corpora.names():
        corpus = corpora.get(name)
        assert corpus.name == name
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", corpus.repository)
        assert set(corpus.splits) <= {"train", "val", "test"}
        assert corpus.column == "text"
    with pytest.raises(ValueError, match=r"unknown corpus 'finweb'; did you mean fineweb"):
        corpora.get("finweb")


@pytest.mark.parametrize(("name", "columns"), COLUMNS.items(), ids=COLUMNS)
def test_local_files_of_a_hub_repository_give_their_texts_in_order(tmp_path, name, columns):
    texts = texts_of(30)
    write_parquet(tmp_path / "sample/10BT/000_00000.parquet", texts[:18], columns)
    write_parquet(tmp_path / "sample/10BT/001_00000.parquet", texts[18:], columns)
    source = documents.source(str(tmp_path), name)
    assert source.name == name
    assert list(source.splits) == ["train"]
    assert list(source.splits["train"]) == texts
    assert str(tmp_path.parent) not in json.dumps(dict(source.record))


def test_other_files_are_another_source(tmp_path):
    folder, copy = tmp_path / "a" / "texts", tmp_path / "b" / "texts"
    for place in (folder, copy):
        place.mkdir(parents=True)
        write_jsonl(place / "train.jsonl", texts_of(4))
    before = documents.source(str(folder)).record
    assert documents.source(str(copy)).record == before
    write_jsonl(folder / "train.jsonl", texts_of(5))
    longer = documents.source(str(folder)).record
    write_jsonl(folder / "validation.jsonl", texts_of(5))
    more = documents.source(str(folder)).record
    assert before != longer != more
    one = documents.source(str(folder / "train.jsonl")).record
    write_jsonl(folder / "validation.jsonl", texts_of(6))
    assert documents.source(str(folder / "train.jsonl")).record == one


def test_the_readme_of_a_repository_chooses_the_files(tmp_path):
    write_parquet(tmp_path / "sample/10BT/0.parquet", ["wanted"], FINEWEB)
    write_parquet(tmp_path / "data/dump/0.parquet", ["not wanted"], FINEWEB)
    (tmp_path / "README.md").write_text(
        "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n"
        "    path: data/*/*\n- config_name: sample-10BT\n  data_files:\n  - split: train\n"
        "    path: sample/10BT/*\n---\n"
    )
    assert list(documents.source(str(tmp_path), "fineweb").splits["train"]) == ["wanted"]


@pytest.mark.parametrize("left", [0, 1, 5, 11, 17, 23, 29])
@pytest.mark.parametrize("kind", ["parquet", "jsonl", "memory"])
def test_a_stream_is_entered_where_it_was_left(tmp_path, kind, left):
    texts = texts_of(30)
    write_parquet(tmp_path / "p" / "train-00000-of-00002.parquet", texts[:12])
    write_parquet(tmp_path / "p" / "train-00001-of-00002.parquet", texts[12:])
    write_jsonl(tmp_path / "rows.jsonl", texts)

    def stream():
        if kind == "memory":
            return documents.in_memory("x", {}, {"train": texts}).splits["train"]
        path = tmp_path / ("p" if kind == "parquet" else "rows.jsonl")
        return documents.source(str(path)).splits["train"]

    first = stream()
    reader = iter(first)
    begun = [next(reader) for _ in range(left)]
    state = json.loads(json.dumps(first.state_dict()))
    second = stream()
    second.load_state_dict(state)
    assert begun + list(second) == texts


def wikitext(folder):
    for split in ("train", "validation", "test"):
        write_parquet(folder / f"{split}-00000-of-00001.parquet", WIKITEXT)
    return documents.source(str(folder), "wikitext103")


def test_lines_of_wikitext_are_joined_into_articles(tmp_path):
    source = wikitext(tmp_path)
    assert {split: list(s) for split, s in source.splits.items()} == dict.fromkeys(
        ("train", "val", "test"), ARTICLES
    )


@pytest.mark.parametrize("left", [0, 1, 2, 3])
def test_a_stream_of_articles_is_entered_where_it_was_left(tmp_path, left):
    first = wikitext(tmp_path).splits["train"]
    reader = iter(first)
    begun = [next(reader) for _ in range(left)]
    second = wikitext(tmp_path).splits["train"]
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert begun + list(second) == ARTICLES
    assert list(first) == ARTICLES, "a stream can be read again"


def test_text_data_keeps_the_splits_of_a_corpus(tmp_path):
    wikitext(tmp_path)
    data = TextData(str(tmp_path), seq_len=8, corpus="wikitext103")
    assert data.corpus_record["corpus"] == "wikitext103"
    for stream in data.streams.values():
        assert (stream == 256).sum() == 3
        assert bytes(stream[stream != 256].astype(np.uint8)).decode() == "".join(ARTICLES)


def test_rows_without_splits_are_divided_by_their_number_for_good(tmp_path):
    write_jsonl(tmp_path / "some.jsonl", texts_of(400), "content")
    few = read_corpus(str(tmp_path / "some.jsonl"), column="content")
    sizes = {split: len(few.texts(split)) for split in ("train", "val", "test")}
    assert sum(sizes.values()) == 400
    assert 340 < sizes["train"] < 380
    assert min(sizes.values()) > 5
    write_jsonl(tmp_path / "some.jsonl", texts_of(500), "content")
    more = read_corpus(str(tmp_path / "some.jsonl"), column="content")
    assert more.documents[:400] == few.documents


def test_lambada_is_a_test_split(tmp_path):
    write_jsonl(tmp_path / "lambada.jsonl", texts_of(3))
    corpus = read_corpus(str(tmp_path / "lambada.jsonl"), "lambada")
    assert corpus.texts("test") == texts_of(3)
    with pytest.raises(ValueError, match=r"'lambada': the train split has 0 tokens"):
        TextData(str(tmp_path / "lambada.jsonl"), corpus="lambada")


def test_empty_rows_are_left_out(tmp_path):
    write_jsonl(tmp_path / "x.jsonl", ["a", "", None, "  ", "b"])
    assert list(open_corpus(str(tmp_path / "x.jsonl")).splits["train"]) == ["a", "b"]


def test_text_files_are_streamed_by_split_too(tmp_path):
    (tmp_path / "x.txt").write_text("0123456789" * 20, "utf-8")
    source = open_corpus(str(tmp_path / "x.txt"))
    parts = {split: "".join(stream) for split, stream in source.splits.items()}
    whole = read_corpus(str(tmp_path / "x.txt"))
    assert parts == {split: whole.texts(split)[0] for split in ("train", "val", "test")}
    assert source.record == {"sha256": whole.sha256()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"corpus": "fineweb"}, "about 1e.10 tokens, too many for memory; make shards of it"),
        ({"path": "nowhere", "corpus": "fineweb"}, "'nowhere': no such file or folder"),
        ({"column": "text"}, "name a published corpus, or the path of Parquet"),
        ({"path": "{}", "column": "text"}, r"has no \.parquet, \.jsonl"),
        ({"path": "{}/x.txt", "column": "text"}, r"is none of \.parquet"),
        ({"path": "{}"}, r"or a column of \.parquet, \.jsonl"),
        ({"path": "{}/more/x.jsonl", "column": "body"}, "no column 'body'; choose from text, year"),
        ({"path": "{}/more/x.jsonl", "column": "year"}, "column 'year' holds int, not text; choo"),
        ({"path": "{}/more/x.jsonl", "column": "meta"}, "column 'meta' holds dict, not text"),
        ({"path": "{}/more", "corpus": "lambada"}, "'lambada' has the splits train, not test"),
    ],
)
def test_bad_input_is_one_line(tmp_path, arguments, message):
    (tmp_path / "x.txt").write_text("", "utf-8")
    filled = {key: value.format(tmp_path) for key, value in arguments.items()}
    if "more" in filled.get("path", ""):
        (tmp_path / "more").mkdir()
        write_jsonl(tmp_path / "more" / "x.jsonl", ["a"])
    with pytest.raises((ValueError, FileNotFoundError), match=message) as refused:
        read_corpus(**filled)
    assert "\n" not in str(refused.value)


def test_a_hub_out_of_reach_is_one_line_at_once(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(documents.Unreachable, match="give their folder as path") as refused:
        read_corpus(corpus="wikitext103")
    assert "Salesforce/wikitext" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_client_that_fails_in_its_own_way_is_one_line_too(monkeypatch):
    import huggingface_hub

    class Strange(Exception):
        pass

    def fail(self, repository, *, revision, timeout):
        assert timeout <= 10
        raise Strange("no\nroute")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", fail)
    with pytest.raises(documents.Unreachable, match=r"HuggingFaceFW/fineweb .*\(no route\)"):
        open_corpus(corpus="fineweb")


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    write_jsonl(tmp_path / "x.jsonl", ["a"])
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ValueError, match=r"need the package datasets: pip install .*\[eval\]"):
        read_corpus(str(tmp_path / "x.jsonl"))


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = (
        "import sys, worldmodel.text.make_shards, worldmodel.text.make_tokenizer; "
        "heavy = {'datasets', 'tiktoken', 'tokenizers', 'torch', 'pyarrow', 'huggingface_hub'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def online():
    import huggingface_hub

    try:
        huggingface_hub.HfApi().dataset_info("Salesforce/wikitext", timeout=5)
    except Exception as error:
        pytest.skip(f"the Hugging Face hub is out of reach: {error}")


@pytest.mark.network
@pytest.mark.parametrize("name", corpora.names())
def test_the_hub_has_what_the_catalogue_says(name):
    online()
    source = open_corpus(corpus=name)
    assert set(source.splits) == set(corpora.get(name).splits)
    assert re.fullmatch(r"[0-9a-f]{40}", source.record["revision"])
    stream = next(iter(source.splits.values()))
    first = next(iter(stream))
    assert len(first) > 20
    if name == "wikitext103":
        assert first.startswith(" = Valkyria Chronicles III = \n")


@pytest.mark.network
def test_wikitext_has_about_as_many_held_out_articles_as_its_authors_say():
    online()
    source = open_corpus(corpus="wikitext103")
    for split in ("val", "test"):  # 60 each; a line inside an article may look like a title
        assert 60 <= sum(1 for _ in source.splits[split]) <= 64
