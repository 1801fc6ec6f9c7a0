"""The documentation describes what exists."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from producer.config import RunConfig
from tests.support import events_page, queries_page, settings_page, tables_page
from tests.support.paths import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)")
CODE_PATH = re.compile(r"`((?:schemas|producer|consumers|alembic|tests|docs)/[\w./-]+)`")


@pytest.mark.parametrize(
    "page", [tables_page, events_page, settings_page, queries_page], ids=lambda page: page.PAGE.name
)
def test_a_generated_page_is_what_it_is_generated_from(page: ModuleType) -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.render(), "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    missing += [path for path in CODE_PATH.findall(text) if not (ROOT / path).exists()]
    assert missing == []


def test_every_setting_has_a_row_and_a_test_that_exists() -> None:
    assert settings_page.SHOWN_BY.keys() == RunConfig.model_fields.keys()
    for name, shown_by in settings_page.SHOWN_BY.items():
        path, _, test = shown_by.partition("::")
        found = re.search(
            rf"^def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE
        )
        assert found, f"{name}: there is no {shown_by}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    linked = {(ROOT / "docs" / link).resolve() for link in LINK.findall(index)}
    pages = {page for page in (ROOT / "docs").rglob("*.md") if page.name != "README.md"}
    assert pages - linked == set()
