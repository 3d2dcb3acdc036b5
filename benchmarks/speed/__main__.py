"""Every figure of the kernels in one command: under 10 minutes on one GPU.

    python -m benchmarks.speed --out DIR

writes ``kernels.jsonl``, ``kernels.png`` and ``gpt2.jsonl``. Each benchmark has a process of its
own, so that the second starts with an empty GPU whatever became of the first. On a CPU both run
in their small form. The exit code is 1 if a kernel of ours failed, see their modules.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run both benchmarks, the second whatever the first says; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description="Time the kernels and GPT-2 with them."
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    folder = parser.parse_args(arguments).out
    commands = {
        "kernels": {"--out": folder / "kernels.jsonl", "--figure": folder / "kernels.png"},
        "gpt2": {"--out": folder / "gpt2.jsonl"},
    }
    for path in (path for options in commands.values() for path in options.values()):
        if path.exists():
            parser.error(f"{path} exists; choose another folder")
    failed = False
    for name, options in commands.items():
        flags = [str(part) for pair in options.items() for part in pair]
        command = [sys.executable, "-m", f"benchmarks.speed.{name}", *flags]
        failed |= subprocess.run(command, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
