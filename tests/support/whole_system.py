"""Both commands as a user calls them, and what stands in the tables afterwards."""

import json
import subprocess
import sys
from typing import Any

import psycopg2

from consumers.database.location import libpq_url
from tests.support.forked_command import Program, run_command

TIMEOUT_S = 240.0


def cua(package: Program, *arguments: str, environ: dict[str, str], code: int = 0) -> str:
    """What it prints. A trainer imports torch, which the process that forks commands has not."""
    if package == "consumers":
        done = run_command(package, *arguments, environ=environ, timeout_s=TIMEOUT_S)
    else:
        done = subprocess.run(
            [sys.executable, "-m", package, *arguments],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )
    assert done.returncode == code, (
        f"{package} {arguments}: exit {done.returncode}\n{done.stderr[-3000:]}"
    )
    return done.stdout


def project_json(*arguments: str, environ: dict[str, str], code: int = 0) -> dict[str, Any]:
    report = json.loads(
        cua("consumers", *arguments, "--json", environ=environ, code=code).splitlines()[-1]
    )
    assert isinstance(report, dict)
    return report


def hashes(environ: dict[str, str]) -> dict[str, str]:
    report = project_json("verify", environ=environ)
    assert report["equal"], report["differences"][:5]
    return {table: found["hash"] for table, found in report["tables"].items()}


def query(url: str, statement: str) -> list[tuple[Any, ...]]:
    connection = psycopg2.connect(libpq_url(url))
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()
