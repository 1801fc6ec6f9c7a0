"""`cua-train run`."""

import json
import os
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from producer.commands.flags import PANELS, ShortHelpCommand, field_flags, with_config_file
from producer.commands.given_fields import given_fields
from producer.commands.options import examples, with_summary_as_json, with_takeover
from producer.commands.shell import continue_command, cua_project_command, print_result
from producer.commands.stopping import ContinueHint, exit_when_stopped
from schemas.installation import read_installation

if TYPE_CHECKING:
    from producer.training.summary import Summary

EPILOG = examples(
    "$ cua-train run                                        # train the demo policy",
    "$ cua-train run --training-name first                  # train, or continue",
    "$ cua-train run --training-name first --num-steps 40   # more steps",
    "$ cua-train run --config run.toml --seed 1             # flags win",
    '$ cua-train run --tasks \'{"source_type": "demo_training", "limit": 8}\'',
)


@click.command(name="run", cls=ShortHelpCommand, epilog=EPILOG)
@field_flags(PANELS)
@with_takeover
@with_config_file
@click.option(
    "--monitor/--no-monitor",
    default=True,
    panel="Output",
    help="Run `cua-project up` meanwhile: tables and monitor. [default: yes]",
)
@with_summary_as_json
def command(
    *, config_file: Path | None, monitor: bool, takeover: bool, as_json: bool, **flags: Any
) -> None:
    """Train a policy, or continue the training of the same --training-name.

    Without flags it trains `demo`: a small policy on a simulated phone, in minutes on a CPU.
    """
    # Imported here to keep --help quick.
    from producer.commands.cua_project import CuaProject
    from producer.commands.existing import has_states, resolve_existing
    from producer.training.asked_config import read_asked
    from producer.training.load_tasks import load_run_tasks
    from producer.training.preflight import check_folders

    installation = read_installation(os.environ)
    config = read_asked(given_fields(flags, config_file), installation)
    check_folders(installation, config)
    if not has_states(config, installation):
        # An existing training has its tasks in the log.
        load_run_tasks(config, os.environ, is_check=True)
    config = resolve_existing(config, installation)
    from producer.training.run import run

    hint = ContinueHint(database=monitor)
    with ExitStack() as children, exit_when_stopped(hint.note) as stop:

        def on_open(name: str, folder: Path) -> None:
            again = continue_command(
                name,
                log_path=None if config.run_folder is None else folder,
                monitor=monitor,
                baseline_only=config.baseline_only,
            )
            hint.begun(name, folder, again)
            if monitor:
                cua_project = CuaProject(name)
                children.callback(cua_project.stop)
                cua_project.start()

        summary = run(
            config, installation=installation, stop=stop, on_open=on_open, takeover=takeover
        )
    if as_json:
        click.echo(json.dumps(asdict(summary)))
    else:
        _print_summary(summary, monitor=monitor)


def _print_summary(summary: "Summary", *, monitor: bool) -> None:
    """`monitor`: it ran meanwhile, and the log has the command that opens it again."""
    from producer.training.success_text import summary_lines

    look = [f"{cua_project_command('psql')}  # SQL"]
    if not monitor:
        look.insert(0, f"{cua_project_command('up')}  # tables and monitor")
    print_result(summary, summary_lines(summary), look, note="  # events")
    if summary.unshipped_events:
        click.echo(
            f"completed here; {summary.unshipped_events:,} events wait for Kafka; once it is back,"
            f" send them with: {cua_project_command('ship')}"
        )
