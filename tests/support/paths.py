"""Folders of the checkout that tests use."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
GOLDEN_EVENTS = ROOT / "tests" / "data" / "events"
"""One file per (type, version) ever written."""
