"""`cua-project monitor`: pages over the tables, for a browser on this machine."""

import _thread
import json
import logging
import os
import signal
from pathlib import Path

import rich_click as click

from consumers.commands.monitor_options import listening, monitor_options

logger = logging.getLogger(__name__)


@click.command()
@monitor_options
@click.option("--json", "as_json", is_flag=True, help='Print {"url"} as the first line.')
def command(*, port: int | None, host: str, token_file: Path | None, as_json: bool) -> None:
    """Show trainings, steps and rollouts with their screenshots in a browser.

    Shows the tables as they are; `cua-project run` or `cua-project up` keeps them up to date.
    Ctrl-C stops it.

    Examples:
        cua-project monitor
        cua-project monitor --port 9000
        cua-project monitor --host 0.0.0.0 --token-file token
    """
    from consumers.database.location import resolve_database
    from consumers.database.revision import look
    from consumers.errors import UnreachableError
    from consumers.home import open_installation
    from consumers.monitor.start import open_monitor

    at = listening(port, host, token_file)
    installation = open_installation(os.environ)
    try:
        look(resolve_database(os.environ, installation)).refuse()
    except UnreachableError as error:
        # It may be over at the next page.
        logger.warning("%s. The monitor serves all the same, and each page tries again", error)
    server = open_monitor(os.environ, installation, at)
    for number in (signal.SIGTERM, signal.SIGINT):
        # shutdown() waits for serve_forever, which runs in this thread.
        signal.signal(number, lambda *_: _thread.start_new_thread(server.shutdown, ()))
    click.echo(json.dumps({"url": server.url}) if as_json else server.url)
    with server:
        server.serve_forever()
