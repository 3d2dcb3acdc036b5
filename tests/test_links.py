"""The links of the documents: what they point to in the repository is there."""

import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\(([^()\s]+)\)")
LISTED = subprocess.run(
    ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.split()
DOCUMENTS = [name for name in LISTED if Path(name).name != "report.md"]
assert "README.md" in DOCUMENTS


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_a_document_links_to_is_there(name):
    document = ROOT / name
    targets = [unquote(x.partition("#")[0]) for x in LINK.findall(document.read_text("utf-8"))]
    local = [x for x in targets if x and ":" not in x]
    assert [x for x in local if not (document.parent / x).exists()] == []
