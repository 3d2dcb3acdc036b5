"""The site: every results folder has a card and a page, submissions stand in the right table."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.site import site
from benchmarks.site.index import same_exam

KEPT = Path(site.KEPT)
ROOT = Path(__file__).parents[3]
PUBLIC = {"protocol": "identifiable", "law": "newton", "n_test": 1000, "seed": 0}
RUN = {
    "protocol": "identifiable",
    "law": "newton",
    "n_test": 1000,
    "shifts": ["all"],
    "shift_file": None,
    "label_leak": 0,
    "protocol_args": {"paper": {"n_points": 128}},
}


def submissions(**changes):
    return {"study": "submissions", "exam": {**PUBLIC, "held_back": False, **changes}}


def test_submissions_stand_beside_the_rows_that_were_asked_the_same():
    assert same_exam(submissions(), RUN)
    assert not same_exam(submissions(held_back=True, seed=None), RUN)
    assert not same_exam(submissions(n_test=999), RUN)
    assert not same_exam(submissions(), {**RUN, "shifts": ["closer"]})
    assert not same_exam(submissions(), {**RUN, "protocol_args": {"identifiable": {"n_bins": 9}}})
    assert not same_exam({**submissions(), "study": "newton"}, RUN)


def test_nested_results_are_found_once_and_named_by_their_place(tmp_path):
    for place in ("a/rates", "b/rates", "index"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "run.json").write_text("{}")
    found = site.find([tmp_path, tmp_path / "a" / "rates"])
    assert set(found) == {"a-rates", "b-rates", "index-2"}
    with pytest.raises(ValueError, match="no results"):
        site.find([tmp_path / "a" / "rates" / "none"])


def test_other_files_are_left_alone(tmp_path, refusal):
    (tmp_path / "mine.txt").write_text("mine")
    made = ["site", str(tmp_path), "--only", str(KEPT / "search_speed")]
    assert "other files" in refusal(main, made)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_place_that_cannot_be_written_is_refused(tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    said = refusal(main, ["site", str(tmp_path / "a" / "b")])
    assert f"{tmp_path} cannot be written to; choose another folder" in said


REFUSED = [
    ("site OUT/file", "OUT/file is a file; choose another folder"),
    ("site OUT/new OUT", "OUT holds no results; name a folder that a run has written"),
    ("site", "the following arguments are required: OUT"),
    ("export OUT --out OUT/models", "OUT is not a results folder (no run.json)"),
    (f"export {KEPT / 'mqar-8192'} --out OUT/models", f"{KEPT / 'mqar-8192'}: models are exported"),
]


def test_what_cannot_be_is_refused_before_torch_and_figures_are_imported(tmp_path):
    (tmp_path / "file").touch()
    code = f"""
import sys
from benchmarks.__main__ import main
for command, _ in {REFUSED!r}:
    try:
        main(command.replace("OUT", {str(tmp_path)!r}).split())
    except SystemExit as refused:
        assert refused.code == 2, command
    assert not {{"torch", "matplotlib"}} & set(sys.modules), command
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for line, (command, said) in zip(done.stderr.splitlines(), REFUSED, strict=True):
        wanted = said if "required" in said else said.replace("OUT", str(tmp_path))
        assert wanted in line, command


@pytest.mark.full
def test_a_site_of_kept_results_links_to_a_page_of_each(tmp_path):
    out = tmp_path / "site"
    names = ("search_speed", "mqar-8192", "implied-small")
    main(["site", str(out), *(str(KEPT / name) for name in names), "--only"])
    index = (out / "index.html").read_text()
    links = re.findall(r'href="([^"#:]+)"', index)
    assert {
        "search_speed.html",
        "mqar-8192.html",
        "implied-small.html",
        "glossary.html",
        "coverage.html",
    } <= set(links)
    assert all((out / link).is_file() for link in links)
    assert "times as fast as 1" in index
    assert index.count('<img alt="Exponents of continued orbits" src="data:') == 1
    assert not re.search(r'(?:src|href)="(?:https?:)?//', index)
    assert 'href="index.html"' in (out / "mqar-8192.html").read_text()
    # Again, without one of them: its page goes, and nothing of a reader's.
    (out / "notes.txt").write_text("mine")
    shutil.copytree(KEPT / "search_speed", tmp_path / "run")
    main(["site", str(out), str(tmp_path / "run"), "--only"])
    assert not (out / "mqar-8192.html").exists()
    assert (out / "run.html").exists()
    assert (out / "notes.txt").read_text() == "mine"
