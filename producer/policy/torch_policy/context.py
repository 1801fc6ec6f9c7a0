"""Which recent turns a prompt shows. Knows no tokens' meaning and no weights.

An episode's prompts extend one another, so that its turns are one training sequence and one KV
cache. A window that slides by one turn would make every turn a sequence of its own. So the context
is re-anchored in blocks: it grows to 2N - 1 past turns, then the N oldest are dropped at once, and
a new sequence begins.
"""

from collections.abc import Sequence

from producer.policy.policy import Turn


def anchor_of(history: Sequence[Turn]) -> int:
    """Index of the first turn in the last turn's prompt. 0 without turns that have tokens."""
    for index in range(len(history) - 1, -1, -1):
        tokens = history[index].completion.tokens
        if tokens is not None and tokens.prompt_extends is None:
            return max(0, index + 1 - tokens.num_prompt_images)
    return 0


def next_anchor(anchor: int, num_turns: int, max_recent_turns: int | None) -> int:
    """Index of the first turn in the prompt after `num_turns` turns; `num_turns`: no past turn.

    At least `max_recent_turns` past turns are shown once there are as many, and fewer than twice
    that; None: all of them.
    """
    if max_recent_turns is None or num_turns - anchor < 2 * max_recent_turns:
        return anchor
    return num_turns - max_recent_turns


def anchors_of_shorter_prompts(anchor: int, num_turns: int) -> Sequence[int]:
    """Where a prompt that is too long may begin instead, the first choice first.

    At least half of the past turns go, or else the next prompt would be too long again.
    """
    return range(anchor + (num_turns - anchor + 1) // 2, num_turns + 1)
