"""How psql is called on the database: which program, and with which environment.

The password goes by the environment, so that no list of processes shows it.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import URL, make_url

from consumers.database.location import libpq_url
from consumers.embedded_postgres.binaries import find_binaries
from consumers.errors import UnreachableError, UsageError
from consumers.tables import OPS_SCHEMA, SCHEMA
from schemas.distribution import install_command

SEARCH_PATH = f"-c search_path={SCHEMA},{OPS_SCHEMA},public"


def shell_command(
    environ: Mapping[str, str], url: str, arguments: Sequence[str], *, sets_path: bool = True
) -> tuple[list[str], dict[str, str]]:
    """The words of the call and its environment. UsageError: there is no psql.

    `sets_path`: the server takes options; else the role's search_path counts.
    """
    parsed = make_url(url)
    settings = parsed.query.get("options", ())
    options = " ".join([settings] if isinstance(settings, str) else settings)
    if sets_path:
        parsed = parsed.update_query_dict({"options": f"{SEARCH_PATH} {options}".strip()})
    # As libpq reads it: the parameter wins.
    in_query = parsed.query.get("password")
    given = in_query[-1] if isinstance(in_query, tuple) else in_query or parsed.password
    parsed = parsed.difference_update_query(["password"])
    words = [_program(environ), "-d", libpq_url(_without_password(parsed)), *arguments]
    password = {} if given is None else {"PGPASSWORD": str(given)}
    # A server that takes connections and answers nothing would be waited for without a word.
    timeout = {"PGCONNECT_TIMEOUT": "8"}
    return words, {**timeout, **environ, **password}


def _without_password(url: URL) -> str:
    # `set` takes None for: leave it as it is.
    return url._replace(password=None).render_as_string(hide_password=False)


def _program(environ: Mapping[str, str]) -> str:
    program = shutil.which("psql", path=environ.get("PATH"))
    if program is None:
        try:
            embedded: Path | None = find_binaries(environ).folder / "psql"
        except UnreachableError:
            embedded = None
        if embedded is None or not embedded.is_file():
            message = (
                "there is no psql; install the system's package postgresql-client, or run"
                f" {install_command('database')}, which brings one"
            )
            raise UsageError(message)
        program = str(embedded)
    return program
