"""As `tinker_cookbook.recipes.cua_rl.database`."""

from tinker_cookbook.recipes.cua_rl.database import (
    get_session,
    get_session_direct,
    init_database,
)

__all__ = ["get_session", "get_session_direct", "init_database"]
