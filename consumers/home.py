"""This machine's installation, as the commands open it: CUA_HOME is checked before it is used."""

import os
from collections.abc import Mapping

from consumers.errors import UsageError
from schemas.installation import Installation, read_installation


def open_installation(environ: Mapping[str, str]) -> Installation:
    """The installation that the environment describes. Creates nothing.

    UsageError when CUA_HOME cannot be a folder or may not be read. A folder that does not exist
    yet is fine: whatever writes first creates it.
    """
    installation = read_installation(environ)
    home = installation.home
    try:
        existing = next(folder for folder in (home, *home.parents) if folder.exists())
    except OSError as error:
        message = f"CUA_HOME: {home} cannot be used: {error.strerror}; choose another"
        raise UsageError(message) from None
    if not existing.is_dir():
        message = (
            f"CUA_HOME: {home} cannot be used: {existing} is a file, not a folder; choose another"
        )
        raise UsageError(message)
    if existing == home and not os.access(home, os.R_OK | os.X_OK):
        message = f"CUA_HOME: {home} cannot be used: no permission to read it; choose another"
        raise UsageError(message)
    return installation
