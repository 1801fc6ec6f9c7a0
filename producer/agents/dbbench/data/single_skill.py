"""Groups of entries that need one skill, for learning skills one after the other."""

from collections.abc import Iterable
from typing import Final

from producer.agents.dbbench.data.skills import KINDS, SKILLS
from schemas.entry import EntryContent

GROUPED: Final = frozenset({"group_by_single_column", "group_by_multiple_columns"})
HAVING: Final = frozenset(
    {"having_single_condition_with_aggregate", "having_multiple_conditions_with_aggregate"}
)
ORDERED: Final = frozenset({"order_by_single_column"})
FILTERED: Final = frozenset({"where_single_condition"})
NEEDED_BY: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(HAVING, GROUPED),
    "having_aggregate_calculation": GROUPED | HAVING,
    "limit_only": ORDERED,
    "limit_and_offset": ORDERED,
    "order_by_single_column": FILTERED,
    "order_by_multiple_columns_same_direction": FILTERED,
    "order_by_multiple_columns_different_directions": FILTERED,
    "column_alias": FILTERED,
    "table_alias": FILTERED,
    "group_by_single_column": FILTERED,
    "group_by_multiple_columns": FILTERED,
    "subquery_single": FILTERED,
    "subquery_multiple": FILTERED | {"where_multiple_conditions"},
    "subquery_nested": FILTERED,
}
"""Target skill -> skills that its entries may need too; every target: a kind of statement."""


def only_skill(entry: EntryContent) -> str | None:
    """The skill of an entry that needs exactly one; None of others."""
    return entry.skills[0] if len(entry.skills) == 1 else None


def target_skill(entry: EntryContent) -> str | None:
    """The one skill that an entry is about, besides its statement's kind and what that skill needs.

    An entry with nothing but a kind is about it. None where there are several, or none.
    """
    skills = frozenset(entry.skills)
    targets = [
        skill
        for skill in SKILLS
        if skill in skills
        and not skills - {skill} - NEEDED_BY.get(skill, frozenset()) - (KINDS - {skill})
        and (skill not in KINDS or len(skills) == 1)
    ]
    return targets[0] if len(targets) == 1 else None


def single_skill_groups(
    entries: Iterable[EntryContent], *, by_target: bool = False
) -> dict[str, list[EntryContent]]:
    """Skill -> its entries, in the order of SKILLS; entries of several skills are left out."""
    groups: dict[str, list[EntryContent]] = {skill: [] for skill in SKILLS}
    for entry in entries:
        skill = target_skill(entry) if by_target else only_skill(entry)
        if skill is not None:
            groups[skill].append(entry)
    return groups
