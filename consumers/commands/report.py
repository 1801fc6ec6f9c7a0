"""`cua-project report`: a training as one HTML file."""

import json
from pathlib import Path

import rich_click as click

SUFFIXES = (".html", ".htm")


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--output", type=click.Path(path_type=Path), metavar="FILE", required=True, help="Write here."
)
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
@click.option(
    "--rollouts",
    "most_rollouts",
    type=click.IntRange(0, 50),
    metavar="N",
    default=6,
    show_default=True,
    help="Show at most N rollouts, failed and solved ones in turn.",
)
@click.option(
    "--json", "as_json", is_flag=True, help='Print {"output", "size_bytes", "num_rollouts"}.'
)
def command(*, name: str, output: Path, overwrite: bool, most_rollouts: int, as_json: bool) -> None:
    """Write a training's page and some of its rollouts into one HTML file.

    The file needs no server and no network: pictures and style are in it. It has at most 1,000
    steps and 12 MiB of screenshots. The rollouts are of the last evaluation, or else of the last
    step. What it shows is what the tables have now.

    Examples:
        cua-project report first --output first.html
        cua-project report first --output first.html --overwrite --rollouts 20
    """
    import os
    from datetime import UTC, datetime

    from consumers.commands.named_training import named_training
    from consumers.commands.whole_file import refuse_existing, write_whole
    from consumers.errors import UsageError
    from consumers.home import open_installation
    from consumers.monitor.blobs import ScreenshotStore
    from consumers.monitor.report import Limits, training_report
    from consumers.queries import get_session
    from consumers.queries.session import open_database

    if output.suffix.lower() not in SUFFIXES:
        message = f"--output: {output} would hold HTML; name a file that ends in .html"
        raise UsageError(message)
    if not overwrite:
        refuse_existing(output)
    store = ScreenshotStore(open_installation(os.environ))
    open_database()
    with get_session() as session:
        training = named_training(session, name)
        report = training_report(session, training, store, datetime.now(UTC), Limits(most_rollouts))
    size_bytes = write_whole(output, report.html)
    facts = {
        "output": str(output),
        "size_bytes": size_bytes,
        "num_rollouts": report.num_rollouts,
    }
    click.echo(json.dumps(facts) if as_json else str(output))
