"""The agent's observations of the database: rows as text."""

from producer.sql_execution import Rows


def rows_text(rows: Rows) -> str:
    """Rows as Python writes a list of tuples; `[]` of a statement without rows."""
    listed = ", ".join(map(repr, rows.rows))
    if rows.is_truncated:
        return f"[{listed}, ...]\nOnly the first {len(rows.rows)} rows are shown."
    return f"[{listed}]"
