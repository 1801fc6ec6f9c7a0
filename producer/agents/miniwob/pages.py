"""The pages of MiniWoB++ by name, read from `pages.tsv`, and which of them are for training."""

import csv
from functools import lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

FILE: Final = "pages.tsv"
SPLITS: Final = ("train", "held_out")
"""Pages for training, and pages for evaluation that are each similar to a training page."""
NEVER_REWARDED: Final = {"hover-shape": "the page never gives a reward"}
"""Pages of the benchmark that are no tasks -> why."""


class WebPage(NamedTuple):
    """One page."""

    name: str
    """Of its HTML file: `click-test-2`."""
    split: str | None
    """One of `SPLITS`; None: it has no oracle, and is chosen by name only."""
    max_steps: int
    """Turns."""


@lru_cache(maxsize=1)
def web_pages() -> dict[str, WebPage]:
    """Name -> page, in the order of the file."""
    text = files("producer.agents.miniwob").joinpath(FILE).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    pages = [WebPage(row["name"], row["split"] or None, int(row["max_steps"])) for row in rows]
    return {page.name: page for page in pages}
