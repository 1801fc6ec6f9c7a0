"""`cua-project monitor`: pages over the tables, for a browser on this machine."""

import json
import os
import signal
import threading

import click


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=None,
    help="Port on loopback; without it 8321, or a free one when that is taken.",
)
@click.option("--json", "as_json", is_flag=True, help='Print {"url"} as the first line.')
def command(*, port: int | None, as_json: bool) -> None:
    """Show trainings, steps and rollouts with their screenshots in a browser; ends with Ctrl-C."""
    from consumers.monitor.start import open_monitor
    from schemas.installation import read_installation

    server = open_monitor(os.environ, read_installation(os.environ), port)
    click.echo(json.dumps({"url": server.url}) if as_json else server.url)
    for number in (signal.SIGTERM, signal.SIGINT):
        # shutdown() waits for serve_forever, which this very thread runs.
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    with server:
        server.serve_forever()
