"""The revisions that this code can migrate to.

Each is one file `NUMBER_NAME.py`, in the order of their numbers. Every command compares them with
the database's; importing alembic for that would take a third of the start of a command.
"""

from pathlib import Path

from consumers.errors import CuaProjectError
from schemas.distribution import install_command


def scripts_folder() -> Path:
    """Of alembic: in the checkout or, when installed, in the package. CuaProjectError."""
    package = Path(__file__).parents[1]
    places = (package / "migrations", package.parent / "alembic")
    for place in places:
        if (place / "env.py").is_file():
            return place
    folders = " or ".join(str(place) for place in places)
    message = f"no migrations in {folders}; run {install_command('project')}"
    raise CuaProjectError(message)


def known_revisions() -> tuple[str, ...]:
    """All, the newest last."""
    files = (scripts_folder() / "versions").glob("[0-9]*_*.py")
    return tuple(sorted(file.name.partition("_")[0] for file in files))


def newest_revision() -> str:
    """The newest one."""
    return known_revisions()[-1]
