"""The task source `miniwob`: pages by name or by split."""

from collections.abc import Sequence

from producer.agents.miniwob.pages import NEVER_REWARDED, SPLITS, WebPage, web_pages
from producer.agents.task_source import SourceFields
from producer.errors import UsageError, did_you_mean
from producer.task import Task

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


def load_pages(source: SourceFields, where: str) -> Sequence[Task]:
    """The tasks of a source. Raises UsageError."""
    pages = web_pages()
    if source.names is None:
        splits = SPLITS if source.split is None else (source.split,)
        return [page_task(page) for page in pages.values() if page.split in splits]
    if source.split is not None:
        message = f"{where}: give names or a split, not both"
        raise UsageError(message)
    for name in source.names:
        if name in NEVER_REWARDED:
            message = f"{where}.names: {name!r} is no task: {NEVER_REWARDED[name]}"
            raise UsageError(message)
    unknown = [name for name in source.names if name not in pages]
    if unknown:
        message = (
            f"{where}.names: no page is called {', '.join(map(repr, unknown))}."
            f"{did_you_mean(unknown[0], pages)} docs/miniwob.md links to the list"
        )
        raise UsageError(message)
    return [page_task(pages[name]) for name in source.names]
