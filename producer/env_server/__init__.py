"""`cua-train env serve`: our environments as an OpenEnv server. Needs the extra `openenv`."""
