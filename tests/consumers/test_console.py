"""Tables and lines on stdout: fitted to a terminal, whole elsewhere."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from consumers.console import Cell, Column, display_width, fit, format_age, print_table, sanitize
from schemas.installation import read_installation
from tests.support.logs import logged_events, write_local_log

LONG = "qwen3-vl-30b-android-lora32-seed0-lr1e-5-second"
SHOW = (
    "from consumers.console import Cell, Column, print_table\n"
    f"print_table([Column('name'), Column('n', is_number=True)],"
    f" [[Cell({LONG!r}, 'red'), '1'], ['b', '22']])"
)


def on_terminal(command: list[str], columns: int, **environ: str) -> str:
    """What a command prints on a terminal of that width."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    cleared = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    process = subprocess.Popen(
        command, stdin=child, stdout=child, env={**cleared, "TERM": "xterm", **environ}
    )
    os.close(child)
    output = b""
    try:
        while chunk := os.read(parent, 65536):
            output += chunk
    except OSError:
        pass  # Linux reports the end of a terminal's output as EIO
    finally:
        os.close(parent)
    assert process.wait(60) == 0
    return output.decode().replace("\r\n", "\n")


def test_without_a_terminal_columns_align_and_nothing_is_cut(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(
        [Column("name"), Column("n", is_number=True), Column("note")],
        [[Cell("a", "red"), "1", ""], [LONG, "22", "x"], ["日本", "3", "y"]],
    )
    pad = len(LONG)
    assert capsys.readouterr().out.splitlines() == [
        f"{'name':<{pad}}   n  note",
        f"{'a':<{pad}}   1",
        f"{LONG}  22  x",
        f"日本{' ' * (pad - 4)}   3  y",
    ]


def test_on_a_terminal_long_cells_wrap_within_its_width() -> None:
    shown = on_terminal([sys.executable, "-c", SHOW], 30, NO_COLOR="1")
    lines = shown.splitlines()
    assert max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines) <= 30
    assert LONG in "".join(line[:26].strip() for line in lines)


def test_no_color_is_honoured() -> None:
    assert "\x1b[31m" in on_terminal([sys.executable, "-c", SHOW], 80)
    assert "\x1b[31m" not in on_terminal([sys.executable, "-c", SHOW], 80, NO_COLOR="1")


def test_a_control_character_never_reaches_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table([Column("name")], [["a\x1b[2Jb"], [Cell("\u202ec", "red")]])
    assert capsys.readouterr().out == "name\na\ufffd[2Jb\n\ufffdc\n"


def test_fit_counts_terminal_columns() -> None:
    assert fit("abcdef", 6) == "abcdef"
    assert fit("abcdef", 4) == "abc…"
    assert fit("日本語", 5) == "日本…"
    assert display_width("e\u0301日") == 3
    assert sanitize("plain") == "plain"


def test_ages_have_one_unit() -> None:
    ages = [format_age(seconds) for seconds in (0.4, 90, 600, 10_000, 400_000)]
    assert ages == ["0 s ago", "90 s ago", "10 min ago", "3 h ago", "5 d ago"]


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_lines_of_tail_fit_the_terminal_and_are_whole_elsewhere(columns: int) -> None:
    write_local_log(read_installation(os.environ).local_log_path, logged_events("demo")[:200])
    command = [sys.executable, "-m", "consumers", "tail"]
    lines = on_terminal(command, columns, NO_COLOR="1").splitlines()
    assert len(lines) == 200
    assert max(map(display_width, lines)) <= columns
    whole = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "…" in "".join(lines)
    assert max(map(len, whole.splitlines())) > columns
