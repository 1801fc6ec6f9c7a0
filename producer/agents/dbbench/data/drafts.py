"""Drafts of entries: for each skill, SQL that needs it and an instruction that determines its rows.

Every order is total: it ends with a column that no two rows share.
"""

from collections.abc import Callable
from typing import Final

from producer.agents.dbbench.data import filter_drafts, group_drafts, order_drafts
from producer.agents.dbbench.data.scene import Draft, Scene

DRAFTS: Final[dict[str, Callable[[Scene], Draft]]] = {
    "select": filter_drafts.select,
    "insert": filter_drafts.insert,
    "delete": filter_drafts.delete,
    "update": filter_drafts.update,
    "where_single_condition": filter_drafts.where_single,
    "where_multiple_conditions": filter_drafts.where_multiple,
    "where_nested_conditions": filter_drafts.where_nested,
    "order_by_single_column": order_drafts.order_by_single,
    "order_by_multiple_columns_same_direction": order_drafts.order_by_same,
    "order_by_multiple_columns_different_directions": order_drafts.order_by_different,
    "limit_only": order_drafts.limit_only,
    "limit_and_offset": order_drafts.limit_and_offset,
    "column_alias": order_drafts.column_alias,
    "table_alias": order_drafts.table_alias,
    "group_by_single_column": group_drafts.group_by_single,
    "group_by_multiple_columns": group_drafts.group_by_multiple,
    "having_single_condition_with_aggregate": group_drafts.having_single,
    "having_multiple_conditions_with_aggregate": group_drafts.having_multiple,
    "having_aggregate_calculation": group_drafts.having_calculation,
    "subquery_single": group_drafts.subquery_single,
    "subquery_multiple": group_drafts.subquery_multiple,
    "subquery_nested": group_drafts.subquery_nested,
}
"""Skill -> what makes a draft that needs it."""
