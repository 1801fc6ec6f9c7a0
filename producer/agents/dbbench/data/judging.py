"""Whether an agent's rows are the gold's: by value, in order only where the gold's SQL orders."""

import math
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from producer.agents.dbbench.data.answer_text import Literal, Row, UnreadableError, read_rows

TOLERANCE: Final = 1e-6
"""Of numbers, relative or absolute."""

GoldRow = tuple[JsonValue, ...]


def is_right_answer(answer: str, gold: Sequence[GoldRow], *, is_ordered: bool) -> bool:
    """Whether the answer has the gold's rows; a blank one does not stand for no rows."""
    if not answer.strip():
        return False
    if len(gold) == 1 and len(gold[0]) == 1 and gold[0][0] == answer.strip():
        # A single text without quotes may contain commas, quotes and brackets.
        return True
    try:
        rows = read_rows(answer)
    except UnreadableError:
        return False
    if len(rows) != len(gold):
        return False
    if is_ordered:
        return all(_is_row(row, wanted) for row, wanted in zip(rows, gold, strict=True))
    return _can_be_paired([[_is_row(row, wanted) for row in rows] for wanted in gold])


def _is_row(row: Row, gold: GoldRow) -> bool:
    return len(row) == len(gold) and all(map(is_value, row, gold))


def is_value(written: Literal, gold: JsonValue) -> bool:
    """Whether a value of an answer is the gold's."""
    if gold is None:
        return written.is_null
    if isinstance(gold, int | float):
        number = written.number
        return number is not None and _is_close(number, gold)
    return gold in written.readings


def _is_close(number: float, gold: float) -> bool:
    try:
        return math.isclose(number, gold, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    except OverflowError:  # an int beyond every float
        return False


def _can_be_paired(fits: Sequence[Sequence[bool]]) -> bool:
    """Whether every gold row has an answer's row of its own (bipartite matching).

    Nearness is not transitive, so that the first row that fits may be another's only one.
    """
    owner: dict[int, int] = {}
    for start in range(len(fits)):
        parent: dict[int, int] = {}
        queue, free = [start], None
        while queue and free is None:
            gold = queue.pop(0)
            for row, is_fitting in enumerate(fits[gold]):
                if not is_fitting or row in parent:
                    continue
                parent[row] = gold
                if row not in owner:
                    free = row
                    break
                queue.append(owner[row])
        if free is None:
            return False
        while free is not None:
            gold = parent[free]
            previous = next((row for row, held in owner.items() if held == gold), None)
            owner[free] = gold
            if previous is not None:
                del owner[previous]
            free = None if gold == start else previous
    return True
