"""Questions about a database, answered by one query and judged by its rows."""

from producer.environments.text_to_sql.environment import TextToSqlEnvironment

__all__ = ["TextToSqlEnvironment"]
