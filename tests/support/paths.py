"""Where the checkout is, however deep the test lies that asks."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN_EVENTS = ROOT / "tests" / "data" / "events"
"""One file per (type, version) ever written."""
