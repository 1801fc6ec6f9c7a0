"""Locates the pages, which come with the package `miniwob`; nothing else of it is used."""

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from producer.errors import UsageError
from schemas.distribution import install_command


@lru_cache(maxsize=1)
def pages_folder() -> Path:
    """The folder of the pages' HTML files. Raises UsageError.

    The package is not imported, because that would import Selenium and Gymnasium.
    """
    spec = find_spec("miniwob")
    for place in (spec.submodule_search_locations if spec else None) or ():
        folder = Path(place) / "html" / "miniwob"
        if folder.is_dir():
            return folder
    message = f"the pages of MiniWoB++ are missing: run {install_command('miniwob')}"
    raise UsageError(message)


def page_url(name: str) -> str:
    """The page's `file://` URL. Raises UsageError."""
    return (pages_folder() / f"{name}.html").as_uri()


def has_page(name: str) -> bool:
    """Whether a page has this name. Raises UsageError."""
    return (pages_folder() / f"{name}.html").is_file()
