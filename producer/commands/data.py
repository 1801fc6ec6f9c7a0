"""`cua-train data`: generate, prepare and import data sets of DB Bench."""

import logging
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from producer.commands.options import (
    COUNT,
    FILE,
    FOLDER,
    SEED,
    check_new_output,
    chosen_names,
    examples,
    option,
    switch,
    with_json,
)
from producer.console import print_report, progress_bar, warn_of_some
from producer.errors import MismatchError, UsageError

if TYPE_CHECKING:
    from schemas.entry import EntryContent

logger = logging.getLogger(__name__)

MAX_GENERATED = 100_000
"""Maximum entries of one call, which are held in memory; the same limit as a task source's."""

SOLVED = "%d of %d golds equal the result of their SQL"

PUBLISHED = "csyq/LifelongAgentBench"
"""The data set's name on the hub."""

_output = option(
    "--output --output-path --output-dir output",
    "A new or empty folder for entry_dict.json, or a file. An existing file with the same entries"
    " is left unchanged.",
    FOLDER,
    metavar="FOLDER|FILE.json",
    required=True,
)
_overwrite = switch("--overwrite", "Replace an existing file of entries at --output.")


class _WordsCommand(click.RichCommand):
    """A command whose --skills also accepts several words, as Agent-PEFT's does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, after joining the words that follow --skills."""
        words: list[str] = []
        for word in args:
            is_more = len(words) > 1 and words[-2] == "--skills" and not word.startswith("-")
            if is_more:
                words[-1] = f"{words[-1].rstrip(',')},{word}"
            else:
                words.append(word)
        return super().parse_args(ctx, words)


@click.group()
def command() -> None:
    """Generate, prepare and import data sets of DB Bench."""


@command.command(
    "generate",
    cls=_WordsCommand,
    epilog=examples(
        "$ cua-train data generate --num-samples 220 --seed 0 --output entries",
        "$ cua-train data generate --num-samples 40 --skills insert,update --output changes",
    ),
)
@option("--num-samples", "Entries to generate.", click.IntRange(1, MAX_GENERATED), required=True)
@option("--seed --random-seed seed", "The same seed generates the same entries.", SEED, default=0)
@option("--skills", "Skills to generate in turn.", metavar="A,B", shown="all 22")
@_output
@_overwrite
@with_json
def generate(
    *,
    num_samples: int,
    seed: int,
    skills: str | None,
    output: Path,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Generate entries, balanced over the skills.

    Each entry has a table of 20 to 50 rows and a gold answer computed by running its SQL. Only the
    gold solves it: an empty answer does not, and neither does doing nothing.
    """
    from producer.agents.dbbench.data.generate import generate as generated
    from producer.agents.dbbench.data.layout import write_entries
    from producer.agents.dbbench.data.skills import SKILLS

    chosen: tuple[str, ...] = SKILLS
    if skills is not None:
        chosen = chosen_names(skills, SKILLS, flag="--skills", noun="skill")
    _check_output(output, overwrite=overwrite)
    entries = []
    with progress_bar("generating entries", num_samples) as bar:
        for entry in generated(num_samples, seed, chosen):
            entries.append(entry)
            bar.advance()
    written = write_entries(entries, output, overwrite=overwrite)
    _report(entries, written, as_json=as_json)


@command.command(
    "import",
    epilog=examples(
        "$ cua-train data import LifelongAgentBench/db_bench --output entries",
        "$ cua-train data import --output-dir entries    # csyq/LifelongAgentBench, from the hub",
    ),
)
@click.argument("source", metavar="[FOLDER|HUB-NAME]", required=False)
@option(
    "--dataset-name",
    "Data set on the hub; Agent-PEFT's flag for HUB-NAME.",
    metavar="OWNER/NAME",
    shown=PUBLISHED,
)
@_output
@_overwrite
@with_json
def import_entries(
    *,
    source: str | None,
    dataset_name: str | None,
    output: Path,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Read a published data set and write it as entry_dict.json.

    Reads a folder with entry_dict.json or Parquet files, one such file, or a data set of the
    Hugging Face hub. Checks every entry; an error names file and field. Entries whose gold differs
    from the result of their SQL are kept and counted.
    """
    from producer.agents.dbbench.data.layout import (
        downloaded,
        is_hub_name,
        read_entries,
        write_entries,
    )

    if source is not None and dataset_name is not None:
        message = "give the data set either as FOLDER|HUB-NAME or as --dataset-name"
        raise UsageError(message)
    source = source or dataset_name or PUBLISHED
    path = Path(source).expanduser()
    if not path.exists():
        if not is_hub_name(source):
            message = f"{source}: there is no such folder, and it is not a hub name (OWNER/NAME)"
            raise UsageError(message)
        _check_output(output, overwrite=overwrite)
        path = downloaded(source)
    _check_output(output, overwrite=overwrite)
    entries = read_entries(path)
    solved = _num_solved(entries, path)
    _report(
        entries,
        write_entries(entries, output, overwrite=overwrite),
        as_json=as_json,
        solved=solved,
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
@option(
    "--input-data-path",
    "File of entries; Agent-PEFT's flag for FOLDER. Implies --single-skill.",
    FILE,
)
@switch("--single-skill", "Group the entries that need exactly one skill, a folder per skill.")
@switch(
    "--target-skill",
    "With --single-skill: group by the skill an entry is about, ignoring its kind of statement and"
    " what that skill requires (GROUP BY for HAVING ...).",
)
@option(
    "--min-per-skill --min-tasks-per-skill min_per_skill",
    "Leave out skills with fewer entries.",
    COUNT,
    default=1,
)
@_output
@_overwrite
@with_json
def prepare(
    *,
    source: Path | None,
    input_data_path: Path | None,
    single_skill: bool,
    target_skill: bool,
    min_per_skill: int,
    output: Path,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Group entries by their only skill, to train skills one after another.

    Writes a folder per skill. An --output that ends in .json is one file instead: Agent-PEFT's
    single_skill_tasks.json, from skill to entries. Entries whose gold differs from the result of
    their SQL are kept and named. Exits with 4 if no skill has enough entries.
    """
    from producer.agents.dbbench.data.layout import (
        read_entries,
        write_entries,
        write_single_skill_tasks,
    )
    from producer.agents.dbbench.data.skills import single_skill_groups

    if (source is None) == (input_data_path is None):
        message = "give the entries either as FOLDER or as --input-data-path FILE"
        raise UsageError(message)
    source = source or input_data_path
    assert source is not None  # noqa: S101  # one of them is given
    if not single_skill and input_data_path is None:
        message = "--single-skill is required: it is the only way to prepare entries"
        raise UsageError(message)
    if output.suffix == ".json":
        _check_output(output, overwrite=overwrite)
    else:
        check_new_output(output)
    entries = read_entries(source)
    groups = single_skill_groups(entries, by_target=target_skill)
    kept = {skill: group for skill, group in groups.items() if len(group) >= min_per_skill}
    few = {skill: len(group) for skill, group in groups.items() if 0 < len(group) < min_per_skill}
    for skill, count in few.items():
        logger.warning("%s: only %d entries; %d are required", skill, count, min_per_skill)
    if not kept:
        hint = "" if target_skill else "; --target-skill ignores what a skill requires"
        message = f"no skill has {min_per_skill} entries that need only it{hint}"
        raise MismatchError(message)
    grouped = [entry for group in kept.values() for entry in group]
    solved = _num_solved(grouped, source)
    if output.suffix == ".json":
        write_single_skill_tasks(kept, output, overwrite=overwrite)
    else:
        for skill, group in kept.items():
            write_entries(group, output / skill)
    counts = {skill: len(group) for skill, group in kept.items()}
    report = {
        "entries": len(entries),
        "grouped": len(grouped),
        "solved_by_gold": solved,
        "skills": counts,
        "left_out": few,
        "output": str(output),
    }
    print_report(report, ["skill", "entries"], list(counts.items()), as_json=as_json)
    if not as_json:
        logger.info(
            "%d of %d entries, of %d skills: %s",
            *(len(grouped), len(entries), len(counts), output),
        )
        logger.info(SOLVED, solved, len(grouped))


def _num_solved(entries: "Sequence[EntryContent]", path: Path) -> int:
    """How many golds equal the result of their SQL.

    Names the others on stderr. Raises UsageError.
    """
    from producer.agents.dbbench.data.generate import Finding, unsound
    from producer.sql_execution import DatabaseFailedError

    findings: list[Finding] = []
    with progress_bar("running the golds", len(entries)) as bar:
        for entry in entries:
            try:
                findings += unsound([entry])
            except DatabaseFailedError as error:
                message = f"{path}: entry {entry.entry_id!r}: table_info: {error}"
                raise UsageError(message) from error
            bar.advance()
    warn_of_some([f"entry {name}: {problem}" for name, problem in findings], "entries")
    return len(entries) - len(findings)


def _check_output(output: Path, *, overwrite: bool) -> None:
    """Check as `check_new_output` does, but allow an existing file of entries.

    Raises UsageError.
    """
    from producer.agents.dbbench.data.layout import FILE_NAME, is_file_of_entries
    from producer.training.preflight import check_writable

    file = output if output.suffix == ".json" else output / FILE_NAME
    if is_file_of_entries(file):
        check_writable(file.parent, "--output")
    elif overwrite and os.path.lexists(file):
        message = f"--output: {file} exists and has no entries of DB Bench; choose another file"
        raise UsageError(message)
    else:
        check_new_output(output)


def _report(
    entries: "Sequence[EntryContent]", path: Path, *, as_json: bool, solved: int | None = None
) -> None:
    """Print how many entries need each skill, and where they were written."""
    from producer.agents.dbbench.data.skills import SKILLS
    from producer.agents.dbbench.data.splits import of_split

    found = Counter(skill for entry in entries for skill in entry.skills)
    counts = {skill: found[skill] for skill in SKILLS}
    num_held_out = len(of_split(entries, "held_out"))
    report = {
        "entries": len(entries),
        "skills": counts,
        "train": len(entries) - num_held_out,
        "held_out": num_held_out,
        "output": str(path),
    }
    if solved is not None:
        report["solved_by_gold"] = solved
    print_report(report, ["skill", "entries"], list(counts.items()), as_json=as_json)
    if as_json:
        return
    logger.info("%d entries, %d about held-out tables: %s", len(entries), num_held_out, path)
    if solved is not None:
        logger.info(SOLVED, solved, len(entries))
