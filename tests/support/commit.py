"""Which code runs."""

import subprocess


def commit() -> str:
    """The checkout's commit, shortened; with `-dirty` when files differ from it."""
    words = ["git", "describe", "--always", "--dirty"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
