"""`cua-train data`: generate, prepare and import data sets of DB Bench."""

import json
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from producer.commands.options import check_new_folder, chosen_names, examples, with_json
from producer.console import print_table, progress_bar
from producer.errors import MismatchError, NotFoundError, UsageError

if TYPE_CHECKING:
    from schemas.entry import EntryContent

logger = logging.getLogger(__name__)

MAX_NAMED = 10
"""Entries that a message names."""
MAX_GENERATED = 100_000
"""Entries of one call, which are in memory; as many as a task source generates."""

_output = click.option(
    "--output",
    "--output-path",
    "output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FOLDER|FILE.json",
    help="Folder to write entry_dict.json into, which must not exist or be empty; or a new file.",
)


@click.group()
def command() -> None:
    """Generate, prepare and import data sets of DB Bench."""


@command.command(
    "generate",
    epilog=examples(
        "$ cua-train data generate --num-samples 220 --seed 0 --output entries",
        "$ cua-train data generate --num-samples 40 --skills insert,update --output changes",
    ),
)
@click.option(
    "--num-samples",
    type=click.IntRange(1, MAX_GENERATED),
    required=True,
    metavar="N",
    help="Entries to generate.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="The same seed gives the same entries. [default: 0]",
)
@click.option(
    "--skills",
    metavar="A,B",
    help="Skills to generate in turn, separated by commas. [default: all 22]",
)
@_output
@with_json
def generate(
    *, num_samples: int, seed: int, skills: str | None, output: Path, as_json: bool
) -> None:
    """Generate entries, balanced over the skills.

    Each has a table of 20 to 50 rows and a gold that was computed by running its SQL. It is solved
    by its gold, and neither by an empty answer nor by doing nothing.
    """
    from producer.agents.dbbench.data.generate import generate as generated
    from producer.agents.dbbench.data.layout import write_entries
    from producer.agents.dbbench.data.skills import SKILLS

    chosen: tuple[str, ...] = SKILLS
    if skills is not None:
        chosen = chosen_names(skills, SKILLS, option="--skills", noun="skill")
    _check_new(output)
    entries = []
    with progress_bar("generating entries", num_samples) as bar:
        for entry in generated(num_samples, seed, chosen):
            entries.append(entry)
            bar.advance()
    _report(entries, write_entries(entries, output), as_json=as_json)


@command.command(
    "import",
    epilog=examples(
        "$ cua-train data import LifelongAgentBench/db_bench --output entries",
        "$ cua-train data import csyq/LifelongAgentBench --output entries",
    ),
)
@click.argument("source", metavar="FOLDER|HUB-NAME")
@_output
@with_json
def import_entries(*, source: str, output: Path, as_json: bool) -> None:
    """Read a published data set and write it as entry_dict.json.

    A folder with entry_dict.json or Parquet files, one such file, or a data set of the Hugging Face
    hub. Every entry is checked; a broken one is named with its file and field. Entries whose gold
    is not what their SQL gives here are kept and counted.
    """
    from producer.agents.dbbench.data.hub import downloaded, is_hub_name
    from producer.agents.dbbench.data.layout import read_entries, write_entries
    from producer.agents.dbbench.data.soundness import Finding, unsound
    from producer.sql_execution import DatabaseFailedError

    path = Path(source).expanduser()
    if not path.exists():
        if not is_hub_name(source):
            message = f"{source}: there is no such folder, and it is no name of the hub: OWNER/NAME"
            raise NotFoundError(message)
        path = downloaded(source)
    _check_new(output)
    entries = read_entries(path)
    with progress_bar("running the golds", len(entries)) as bar:
        findings: list[Finding] = []
        for entry in entries:
            try:
                findings += unsound([entry])
            except DatabaseFailedError as error:
                message = f"{path}: entry {entry.entry_id!r}: table_info: {error}"
                raise UsageError(message) from error
            bar.advance()
    for finding in findings[:MAX_NAMED]:
        logger.warning("entry %s: %s", *finding)
    if len(findings) > MAX_NAMED:
        logger.warning("and %d entries more", len(findings) - MAX_NAMED)
    _report(
        entries,
        write_entries(entries, output),
        as_json=as_json,
        solved=len(entries) - len(findings),
    )


@command.command(
    "prepare",
    epilog=examples(
        "$ cua-train data prepare entries --single-skill --min-per-skill 5 --output by-skill",
        "$ cua-train data prepare entries --single-skill --target-skill --min-per-skill 5"
        " --output by-target",
    ),
)
@click.argument("source", metavar="[FOLDER]", type=click.Path(path_type=Path), required=False)
@click.option(
    "--input-data-path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The entries, in Agent-PEFT's spelling of this command; implies --single-skill.",
)
@click.option(
    "--single-skill",
    is_flag=True,
    help="Group the entries that need exactly one skill, a folder for each skill.",
)
@click.option(
    "--target-skill",
    is_flag=True,
    help=(
        "With --single-skill: group entries by the one skill they are about, beside their kind of"
        " statement and what that skill needs (GROUP BY for HAVING ...)."
    ),
)
@click.option(
    "--min-per-skill",
    "--min-tasks-per-skill",
    "min_per_skill",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Leave out skills with fewer entries. [default: 1]",
)
@_output
@with_json
def prepare(
    *,
    source: Path | None,
    input_data_path: Path | None,
    single_skill: bool,
    target_skill: bool,
    min_per_skill: int,
    output: Path,
    as_json: bool,
) -> None:
    """Group entries by their only skill, to train skills one after the other.

    A folder for each skill; with an --output that ends in .json one file, Agent-PEFT's
    single_skill_tasks.json: skill -> entries. Exits with 4 if no skill has enough entries.
    """
    from producer.agents.dbbench.data.layout import (
        read_entries,
        write_entries,
        write_single_skill_tasks,
    )
    from producer.agents.dbbench.data.single_skill import single_skill_groups

    if (source is None) == (input_data_path is None):
        message = "give the entries once: as FOLDER or as --input-data-path FILE"
        raise UsageError(message)
    source = source or input_data_path
    assert source is not None  # noqa: S101  # one of them is given
    if not single_skill and input_data_path is None:
        message = "--single-skill is needed: it is the only way to prepare entries"
        raise UsageError(message)
    _check_new(output)
    entries = read_entries(source)
    groups = single_skill_groups(entries, by_target=target_skill)
    kept = {skill: group for skill, group in groups.items() if len(group) >= min_per_skill}
    few = {skill: len(group) for skill, group in groups.items() if 0 < len(group) < min_per_skill}
    for skill, count in few.items():
        logger.warning("%s: only %d entries; %d are needed", skill, count, min_per_skill)
    if not kept:
        hint = "" if target_skill else "; --target-skill counts what a skill needs as part of it"
        message = f"no skill has {min_per_skill} entries that need it alone{hint}"
        raise MismatchError(message)
    if output.suffix == ".json":
        write_single_skill_tasks(kept, output)
    else:
        for skill, group in kept.items():
            write_entries(group, output / skill)
    counts = {skill: len(group) for skill, group in kept.items()}
    if as_json:
        click.echo(
            json.dumps(
                {
                    "entries": len(entries),
                    "grouped": sum(counts.values()),
                    "skills": counts,
                    "left_out": few,
                    "output": str(output),
                },
                indent=2,
            )
        )
        return
    print_table(["skill", "entries"], list(counts.items()))
    logger.info(
        "%d of %d entries, of %d skills: %s",
        *(sum(counts.values()), len(entries), len(counts), output),
    )


def _check_new(output: Path) -> None:
    """As `check_new_folder`; of a .json file the file must not exist. UsageError."""
    if output.suffix != ".json":
        check_new_folder(output)
        return
    from producer.training.writable import check_writable

    check_writable(output.parent, "--output")
    if output.exists():
        message = f"--output: {output} exists; choose another file"
        raise UsageError(message)


def _report(
    entries: "Sequence[EntryContent]", path: Path, *, as_json: bool, solved: int | None = None
) -> None:
    """How many entries need each skill, and where they were written."""
    from producer.agents.dbbench.data.skills import SKILLS
    from producer.agents.dbbench.data.splits import of_split

    counts = Counter(skill for entry in entries for skill in entry.skills)
    num_held_out = len(of_split(entries, "held_out"))
    if as_json:
        report = {
            "entries": len(entries),
            "skills": {skill: counts[skill] for skill in SKILLS},
            "train": len(entries) - num_held_out,
            "held_out": num_held_out,
            "output": str(path),
        }
        if solved is not None:
            report["solved_by_gold"] = solved
        click.echo(json.dumps(report, indent=2))
        return
    print_table(["skill", "entries"], [[skill, counts[skill]] for skill in SKILLS])
    logger.info(
        "%d entries, %d of them about held-out tables: %s", len(entries), num_held_out, path
    )
    if solved is not None:
        logger.info("%d of %d golds are what their SQL gives here", solved, len(entries))
