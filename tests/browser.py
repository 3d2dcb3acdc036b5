"""Pages in headless Chromium: what a script finds in one, as a window of some size shows it."""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
MARKS = [
    pytest.mark.full,
    pytest.mark.skipif(not CHROMIUM, reason="needs Chromium on the PATH"),
]
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",  # as on a telephone, where they take no room
    "--allow-file-access-from-files",
    "--virtual-time-budget=5000",
    "--enable-logging=stderr",
)
FRAME = """<iframe id="f" width="WIDTH" height="HEIGHT" src="PAGE"></iframe><pre></pre>
<script>
document.getElementById("f").addEventListener("load", (event) => {
  const inner = event.target.contentWindow, page = inner.document;
  const told = (() => { ASKED })();
  document.querySelector("pre").textContent = JSON.stringify(told);
});
</script>"""


def ask(page, script, width=1280, height=800, dark=False):
    """Return what a script returns of a page; what its console says is an error.

    Args:
        page: The file.
        script: The body of a JavaScript function, to which the document is ``page`` and its window
            ``inner``; what it returns is written as JSON.
        width: Of the window, in pixels; a frame, since Chromium's own is not below 500.
        height: Likewise.
        dark: Whether the reader prefers dark pages.
    """
    values = {"WIDTH": str(width), "HEIGHT": str(height), "PAGE": page.as_uri(), "ASKED": script}
    with tempfile.TemporaryDirectory() as folder:
        frame = Path(folder) / "frame.html"
        frame.write_text(re.sub("|".join(values), lambda found: values[found[0]], FRAME))
        own = [f"--user-data-dir={folder}/profile"]
        own += [f"--blink-settings=preferredColorScheme={0 if dark else 1}"]
        command = [CHROMIUM, *FLAGS, *own, "--dump-dom", frame.as_uri()]
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    said = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    assert not said, said
    found = re.search(r"<pre>(.*?)</pre>", run.stdout, re.DOTALL)
    assert found, run.stdout
    assert found[1], run.stderr
    return json.loads(found[1].replace("&quot;", '"').replace("&amp;", "&"))


TOO_WIDE = (
    "return [page.documentElement.scrollWidth, [...page.body.querySelectorAll('*')]"
    ".filter((x) => !x.closest('.scroll, .drawing'))"
    ".filter((x) => x.getBoundingClientRect().right > inner.innerWidth)"
    ".map((x) => x.tagName)]"
)
"""Asks for the width of a page, and for what is wider than its window and does not scroll."""
