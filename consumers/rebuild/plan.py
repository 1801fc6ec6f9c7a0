"""What a swap has to do so that objects of users work as before."""

from dataclasses import dataclass, field

from consumers.database.dependants import TABLE_NAMES
from consumers.tables import SCHEMA

LIVE: dict[str, object] = {"schema": SCHEMA, "names": list(TABLE_NAMES)}
"""Parameters of a query about the live tables."""


@dataclass
class Plan:
    """Statements that carry everything from the live tables to those of the schema `target`.

    All name the live tables `cua.…`; they run with an empty search_path.
    """

    target: str
    before: list[str] = field(default_factory=list)
    """On the target's tables, while the live ones are in use; may take long."""
    locks: list[str] = field(default_factory=list)
    """Lock what `after` changes besides our tables, together with them: readers that hold the
    one and wait for the other would otherwise keep every attempt from succeeding."""
    relations: set[int] = field(default_factory=set)
    """PostgreSQL's oids of users' views and tables that `locks` and `after` lock."""
    after: list[str] = field(default_factory=list)
    """In the swap, when the target's tables are called `cua.…` and the others
    `cua_previous.…`; readers wait for them."""
    validate: list[str] = field(default_factory=list)
    """After the swap; may take long."""
    refused: list[str] = field(default_factory=list)
    """What cannot be carried, in words."""
    publications: set[str] = field(default_factory=set)
    """Whose subscribers have to copy the tables again."""
    views: list[tuple[str, int]] = field(default_factory=list)
    """Views that are defined again: in words, and PostgreSQL's oid."""
    dangling: list[tuple[str, str]] = field(default_factory=list)
    """Foreign keys: in words, and a query that counts rows without a counterpart in the target."""
    names: list[str] = field(default_factory=list)
    """What is carried that lies outside of our tables, in words."""
