"""As `tinker_cookbook.recipes.cua_rl.database_dao`."""

from tinker_cookbook.recipes.cua_rl import database_dao
from tinker_cookbook.recipes.cua_rl.database_dao import *  # noqa: F403  # the same names

__getattr__ = database_dao.__getattr__
