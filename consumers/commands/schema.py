"""`cua-project schema`: the JSON Schemas of events."""

import json

import rich_click as click

from consumers.console import Column, print_table
from consumers.errors import NotFoundError, UsageError
from schemas.advice import did_you_mean

TYPE_PREFIX = "cua."


@click.command()
@click.argument("event_type", metavar="[TYPE]", required=False)
@click.option(
    "--version",
    type=click.IntRange(min=1),
    metavar="N",
    help="This version of the type. [default: the newest]",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="One line of JSON: the schema, or without TYPE a list of every type and version.",
)
def command(event_type: str | None, *, version: int | None, as_json: bool) -> None:
    """Print the JSON Schema of an event's data, or without TYPE the types and their versions.

    TYPE is an event's type, with or without cua. Older versions are listed too: the log keeps their
    events for ever.

    Examples:
        cua-project schema
        cua-project schema step.finished | jq .properties
        cua-project schema rollout.turn_taken --version 1
    """
    if event_type is None:
        if version is not None:
            message = "--version needs a type: cua-project schema TYPE --version N"
            raise UsageError(message)
        _list(as_json=as_json)
        return
    from schemas.json_schemas import read_schema

    name, number = _find(event_type, version)
    schema = read_schema(name, number)
    click.echo(json.dumps(schema, ensure_ascii=False, indent=None if as_json else 2))


def _find(event_type: str, version: int | None) -> tuple[str, int]:
    """The type's whole name and the version; the newest when none is given. NotFoundError."""
    from schemas.json_schemas import schema_versions

    known = schema_versions()
    name = next((item for item in (event_type, TYPE_PREFIX + event_type) if item in known), None)
    if name is None:
        short = [item.removeprefix(TYPE_PREFIX) for item in known]
        advice = (
            did_you_mean(event_type.removeprefix(TYPE_PREFIX), short)
            or " `cua-project schema` lists the types"
        )
        message = f"there is no event type {event_type!r}.{advice}"
        raise NotFoundError(message)
    if version is not None and version not in known[name]:
        versions = ", ".join(map(str, known[name]))
        message = f"{name} has no version {version}; its versions are {versions}"
        raise NotFoundError(message)
    return name, known[name][-1] if version is None else version


def _list(*, as_json: bool) -> None:
    from schemas.json_schemas import read_schema, schema_versions

    rows = [
        {
            "type": name,
            "version": version,
            "is_current": version == versions[-1],
            "description": str(read_schema(name, version)["description"]),
        }
        for name, versions in schema_versions().items()
        for version in versions
    ]
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    print_table(
        [Column("type"), Column("version", is_number=True), Column("")],
        [[str(row["type"]), str(row["version"]), str(row["description"])] for row in rows],
    )
