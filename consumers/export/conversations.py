"""The dataset as conversations: one JSON line per rollout, in items of the OpenAI Responses API."""

from base64 import b64encode
from collections.abc import Callable, Iterable
from pathlib import Path

from pydantic_core import to_json

from consumers.export.messages import Exchange, to_items
from consumers.export.rollouts import EndedRollout
from consumers.export.rows import rollout_row
from consumers.export.synced_file import synced_file, write_synced
from consumers.export.trainings import Trainings

FILE = "conversations.jsonl"
README = """# Rollouts of computer-use agents

`conversations.jsonl` has one object per rollout: the columns of `rollouts` (task, outcome, reward)
and `items`, its turns as input items of the OpenAI Responses API (`input_text`, `input_image`,
`output_text`). The conversation is the whole episode; a policy with a limited context saw the
instruction and the most recent turns of it.
"""


def write_conversations(
    folder: Path,
    ended: Iterable[EndedRollout],
    facts: Trainings,
    image: Callable[[str], bytes | None],
) -> tuple[int, int]:
    """Write the file and its README.md; numbers of rollouts and turns. OSError.

    `image`: a reference's bytes; None names the reference instead.
    """
    write_synced(folder / "README.md", README)
    num_rollouts = num_turns = 0
    with synced_file(folder / FILE) as file:
        for rollout in ended:
            exchanges = [
                Exchange(turn.text, _url(turn.screenshot_before, image), turn.model_response)
                for turn in rollout.turns
            ]
            row = {**rollout_row(rollout, facts), "items": to_items(exchanges)}
            file.write(to_json(row, inf_nan_mode="null") + b"\n")
            num_rollouts += 1
            num_turns += len(exchanges)
    return num_rollouts, num_turns


def _url(ref: str | None, image: Callable[[str], bytes | None]) -> str | None:
    if ref is None:
        return None
    content = image(ref)
    return ref if content is None else f"data:image/png;base64,{b64encode(content).decode()}"
