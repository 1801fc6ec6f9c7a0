"""`cua-project archive`: copy the log to Parquet files."""

import json
import os
from pathlib import Path

import rich_click as click

from consumers.console import Column, print_table


@click.command()
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option(
    "--check", is_flag=True, help="Only read the archive's files and compare their hashes."
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help='Print {"events", "files", "seconds", "log_id", "positions"}.',
)
def command(*, folder: Path, check: bool, as_json: bool) -> None:
    """Copy the log into Parquet files, up to its end now; the next call adds what is new.

    The manifest in the folder names every file with its topic, partition, offsets and sha256. With
    an archive, Kafka's retention may delete old records: `rebuild --archive` and `verify --archive`
    read them from the archive. Screenshots are no part of it; they stay in the blob store.

    Examples:
        cua-project archive /backup/log
        cua-project archive --check /backup/log
        cua-project rebuild --archive /backup/log
    """
    from consumers.archive.open import require_pyarrow
    from consumers.home import open_installation
    from consumers.log.open import open_reader
    from consumers.rebuild.until import format_positions

    require_pyarrow()
    from consumers.archive.write import archive, check_archive

    if check:
        manifest = check_archive(folder)
        num_records = sum(file.num_records for file in manifest.files)
        positions = format_positions(manifest.ends())
        _print(num_records, len(manifest.files), 0.0, manifest.log_id, positions, as_json=as_json)
        return
    reader = open_reader(open_installation(os.environ))
    try:
        report = archive(reader, folder)
    finally:
        reader.close()
    positions = format_positions(report.positions)
    _print(
        *(report.events, report.files, report.seconds, report.log_id, positions), as_json=as_json
    )


def _print(
    events: int, files: int, seconds: float, log_id: str, positions: str, *, as_json: bool
) -> None:
    if as_json:
        summary = {
            "events": events,
            "files": files,
            "seconds": round(seconds, 3),
            "log_id": log_id,
            "positions": positions,
        }
        click.echo(json.dumps(summary))
        return
    columns = [Column("events", is_number=True), Column("files", is_number=True), Column("log")]
    print_table(columns, [[f"{events:,}", f"{files:,}", log_id]])
