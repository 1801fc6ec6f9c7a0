"""docs/recording.md: its blocks run as they are, and its tables name what exists."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from consumers.embedded_postgres.postgres import stop_running
from producer import record
from schemas.installation import read_installation
from tests.support.paths import ROOT
from tests.test_readme import environ, read_blocks

__all__ = ["environ"]
PAGE = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
BLOCKS = list(read_blocks(PAGE))


@pytest.mark.services
def test_the_quick_start_runs_and_its_tables_verify(
    environ: dict[str, str], tmp_path: Path
) -> None:
    output = ""
    try:
        for block in BLOCKS:
            if block.language == "text":
                continue
            is_python = block.language == "python"
            program = [sys.executable, "-c"] if is_python else ["bash", "-euo", "pipefail", "-c"]
            done = subprocess.run(
                [*program, block.text],
                cwd=tmp_path,
                env={**environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                timeout=180,
                stdin=subprocess.DEVNULL,
                check=False,
            )
            assert done.returncode == 0, f"recording.md:{block.line}\n{done.stdout}\n{done.stderr}"
            output += done.stdout + done.stderr
    finally:
        stop_running(read_installation(os.environ).database_dir)
    assert "recorded quick-start" in output
    assert re.search(r"equal after \d+ events", output)
    assert (tmp_path / "dataset" / "turns").is_dir()


def test_the_page_names_every_public_name_and_the_version() -> None:
    assert f"`record.VERSION` ({record.VERSION})" in PAGE
    methods = {
        "training": record.Training,
        "step": record.Step,
        "group": record.Group,
        "rollout": record.Rollout,
    }
    named = set(re.findall(r"`(training|step|group|rollout)\.(\w+)", PAGE))
    assert [f"{part}.{name}" for part, name in named if not hasattr(methods[part], name)] == []
    shown = {(part, name) for part, name in named if hasattr(methods[part], name)}
    public = {
        (part, name)
        for part, kind in methods.items()
        for name in dir(kind)
        if callable(getattr(kind, name)) and not name.startswith("_")
    }
    internal = {("training", "begin"), ("training", "end"), *((part, "abort") for part in methods)}
    internal |= {("group", "close"), ("step", "close"), ("group", "train")}
    assert public - shown == internal
