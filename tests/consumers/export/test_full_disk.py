"""A full disk ends what writes Parquet with an error, and nothing half is left on it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from consumers.home import open_installation
from tests.reference_fold.histories import Shape
from tests.support.logs import logged_events, write_local_log

NO_ROOM = """
import os, resource, sys
from pathlib import Path
from consumers.archive.write import archive
from consumers.export.export import export
from consumers.home import open_installation
from consumers.log.open import open_reader

installation = open_installation(os.environ)
reader = open_reader(installation)
reader.partitions()
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    if sys.argv[1] == "archive":
        archive(reader, Path(sys.argv[2]))
    else:
        export(reader, installation, Path(sys.argv[2]), with_images=False)
except OSError:
    sys.exit(1)
"""


@pytest.mark.parametrize("command", ["export", "archive"])
def test_a_disk_without_room_is_an_error_without_a_traceback_and_leaves_no_half_file(
    command: str, tmp_path: Path
) -> None:
    events = logged_events("a", "b", shape=Shape(steps=2, groups=4, group_size=4, turns=4))
    path = open_installation(os.environ).local_log_path
    path.parent.mkdir(parents=True)
    write_local_log(path, events)

    done = subprocess.run(
        [sys.executable, "-c", NO_ROOM, command, str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert not list(tmp_path.rglob("*.partial"))
