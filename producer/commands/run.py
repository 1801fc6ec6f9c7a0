"""`cua-train run`."""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import click

from producer.commands.consuming import ConsumingSide
from producer.commands.flags import config_flags, given_fields
from producer.config import read_config


def stop_on_signals() -> threading.Event:
    """Set by the first SIGINT or SIGTERM; the second ends the process at once."""
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        click.echo("stopping in order; once more stops at once", err=True)

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    return stop


def say(line: str) -> None:
    """Everything but data goes to stderr."""
    click.echo(line, err=True)


@click.command(name="run")
@config_flags
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="JSON or TOML file of fields; flags win.",
)
@click.option(
    "--monitor/--no-monitor",
    default=True,
    help="Keep the tables and show the monitor while training (cua-project up).",
)
@click.option(
    "--takeover", is_flag=True, help="Continue although another host seems to train this still."
)
@click.option("--json", "as_json", is_flag=True, help="Last line of output: the summary as JSON.")
def command(
    *, config_file: Path | None, monitor: bool, takeover: bool, as_json: bool, **flags: Any
) -> int:  # the fields' flags
    """Train a policy, or continue the training of the same --training-name.

    Without flags: the preset demo, a small policy on a simulated phone, in minutes on a CPU.
    """
    config = read_config(given_fields(flags, config_file))
    from dataclasses import asdict

    from producer.errors import StopRequestedError
    from producer.training.run import run

    stop = stop_on_signals()
    consuming = ConsumingSide(say)

    def on_open(name: str, folder: Path) -> None:
        say(f"training: {name}")
        say(f"continue it with: cua-train run --training-name {name}")
        say(f"state and checkpoints: {folder}")
        if monitor:
            consuming.start()

    try:
        summary = run(config, stop=stop, on_open=on_open, takeover=takeover)
    except StopRequestedError:
        say("stopped; the same command continues")
        return 130
    finally:
        consuming.stop()
    if as_json:
        click.echo(json.dumps(asdict(summary)))
    else:
        _print_summary(asdict(summary))
    # Threads of devices that hang must not keep a finished run alive.
    sys.stdout.flush()
    return 0


def _print_summary(summary: dict[str, Any]) -> None:
    name = summary["training_name"]
    click.echo(
        f"training {name}: {summary['status']} after step {summary['steps']},"
        f" {summary['seconds']:.0f} s"
    )
    for when in ("before", "after"):
        success, error = summary[f"success_{when}"], summary[f"standard_error_{when}"]
        if success is not None:
            click.echo(
                f"success {when}: {success:.3f} ± {error:.3f} ({summary['episodes']} episodes on"
                " unseen seeds)"
            )
    prefix = "" if not os.environ.get("CUA_HOME") else f"CUA_HOME={os.environ['CUA_HOME']} "
    click.echo("look at it:")
    click.echo(f"  {prefix}cua-project up                       # monitor and tables")
    click.echo(f'  {prefix}psql "$({prefix}cua-project database)"  # SQL')
    click.echo(f"  {prefix}cua-project tail --training {name} -n 20")
