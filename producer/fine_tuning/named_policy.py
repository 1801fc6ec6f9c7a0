"""The policy and questions named by a text-to-SQL command, as configuration fields of a run."""

from pathlib import Path
from typing import Any

from producer.agents.text_to_sql.data.layouts import DATA_SPLITS, question_files
from producer.errors import UsageError
from producer.policy.adapter_settings import is_adapter, read_adapter_settings
from producer.tasks.sources import load_tasks


def policy_fields(model_name: str | None) -> dict[str, Any]:
    """The configuration fields for this policy: a folder, a hub id, or an adapter with its base.

    Raises UsageError for an adapter that does not name its base.
    """
    if model_name is None:
        return {}
    folder = Path(model_name).expanduser()
    if not is_adapter(folder):
        return {"model_name": model_name}
    base = read_adapter_settings(folder).base_name
    if base is None:
        message = f"model_name: the adapter {folder} does not name its base"
        raise UsageError(message)
    return {"model_name": base, "load_checkpoint_path": folder.absolute()}


def questions_of(
    folder: Path, split: str, limit: int | None = None, *, skip_invalid: bool = False
) -> dict[str, Any]:
    """The task source for a split."""
    source: dict[str, Any] = {
        "source_type": "text_to_sql",
        "path": str(folder.expanduser().absolute()),
        "split": split,
    }
    if skip_invalid:
        source["skip_invalid"] = True
    return source if limit is None else {**source, "limit": limit}


def num_questions(source: dict[str, Any]) -> int:
    """Number of questions in a task source. Raises UsageError."""
    try:
        return len(load_tasks(source))
    except UsageError as error:
        message = f"data_path: {error.message}"
        raise UsageError(message, ways=error.ways) from error


def held_out_split(folder: Path) -> str | None:
    """The split to evaluate on: dev, else test; None if there is neither."""
    for split in DATA_SPLITS[1:]:
        try:
            question_files(folder, split)
        except UsageError:
            continue
        return split
    return None
