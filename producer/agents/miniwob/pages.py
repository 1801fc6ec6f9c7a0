"""The pages of MiniWoB++ by name, read from `pages.tsv`, and their splits."""

import csv
from functools import lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

FILE: Final = "pages.tsv"
SPLITS: Final = ("train", "held_out")
"""`train` pages, and `held_out` pages for evaluation, each similar to a training page."""
NEVER_REWARDED: Final = {"hover-shape": "the page never gives a reward"}
"""Maps pages of the benchmark that cannot be tasks to the reason."""


class WebPage(NamedTuple):
    """One page."""

    name: str
    """Name of its HTML file without the suffix: `click-test-2`."""
    split: str | None
    """One of `SPLITS`. None if the page has no oracle; it can then be chosen only by name."""
    max_steps: int
    """Maximum turns."""


@lru_cache(maxsize=1)
def web_pages() -> dict[str, WebPage]:
    """Map names to pages, in the order of the file."""
    text = files("producer.agents.miniwob").joinpath(FILE).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    pages = [WebPage(row["name"], row["split"] or None, int(row["max_steps"])) for row in rows]
    return {page.name: page for page in pages}
