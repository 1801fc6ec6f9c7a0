"""`tinker_cookbook.recipes.cua_rl`: the CUA recipe, by cua-train."""
