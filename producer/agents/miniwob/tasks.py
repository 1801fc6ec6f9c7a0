"""The task source `miniwob`: pages by name or by split."""

from collections.abc import Sequence
from typing import Literal

from producer.agents.miniwob.pages import NEVER_REWARDED, SPLITS, WebPage, web_pages
from producer.agents.task_source import NamedSource
from producer.errors import UsageError
from producer.task import Task
from schemas.advice import did_you_mean

DESCRIPTION = "On the web page {name}, do what its yellow field asks for."


def page_task(page: WebPage) -> Task:
    """The task of a page. Its details are drawn with the episode's seed."""
    return Task(
        task_id=page.name,
        name=page.name,
        description=DESCRIPTION.format(name=page.name),
        difficulty=None,
        category=None,
        max_steps=page.max_steps,
        validation_query=None,
        expected_result=None,
        source_type="miniwob",
        split="eval" if page.split == "held_out" else "train",
        judge="environment",
    )


class Pages(NamedSource):
    """Web pages. Without names or a split, all that have one."""

    source_type: Literal["miniwob"]

    def load(self, where: str) -> Sequence[Task]:
        """The tasks of the pages, in the order of the names or of the list of pages."""
        pages = web_pages()
        if self.names is None:
            splits = SPLITS if self.split is None else (self.split,)
            return [page_task(page) for page in pages.values() if page.split in splits]
        for name in self.names:
            if name in NEVER_REWARDED:
                message = f"{where}.names: {name!r} is no task: {NEVER_REWARDED[name]}"
                raise UsageError(message)
        unknown = [name for name in self.names if name not in pages]
        if unknown:
            message = (
                f"{where}.names: no page is called {', '.join(map(repr, unknown))}."
                f"{did_you_mean(unknown[0], pages)} docs/miniwob.md links to the list"
            )
            raise UsageError(message)
        return [page_task(pages[name]) for name in self.names]
