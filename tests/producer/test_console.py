"""What commands draw and log, on a terminal and elsewhere."""

import io
import json
import logging
import sys

import pytest

from producer.console import print_table, progress_bar, rounded
from producer.log_lines import configure_logging, is_for_people, log_flags
from schemas.log_lines import LogFormat


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Both standard streams are now a terminal of 60 columns."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    for name, value in (("COLUMNS", "60"), ("LINES", "20"), ("TERM", "xterm-256color")):
        monkeypatch.setenv(name, value)
    return stream


def test_a_line_is_the_message_alone_and_a_warning_is_called_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging()
    logger = logging.getLogger("producer.training")
    logger.debug("detail")
    logger.info("step %d", 1)
    logger.warning("Kafka is unreachable")
    logger.error("no such task")
    assert capsys.readouterr().err == (
        "step 1\nwarning: Kafka is unreachable\nerror: no such task\n"
    )


def test_json_lines_have_time_level_logger_and_message(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(log_format="json")
    logging.getLogger("producer.log").warning("away for\n%d s", 3)
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert found.pop("time").endswith("+00:00")
    assert found == {"level": "warning", "logger": "producer.log", "message": "away for\n3 s"}


def test_configuring_again_replaces_and_other_libraries_are_heard_with_verbose_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging(logging.WARNING)
    configure_logging(logging.WARNING)
    logging.getLogger("producer").info("progress")
    logging.getLogger("producer").warning("once")
    logging.getLogger("kafka.conn").error("connection refused")
    assert capsys.readouterr().err == "warning: once\n"
    configure_logging(logging.DEBUG)
    logging.getLogger("kafka.conn").error("connection refused")
    logging.getLogger("producer").debug("detail")
    assert capsys.readouterr().err == "error: connection refused\ndebug: detail\n"


def test_a_process_beside_this_one_is_told_to_log_alike() -> None:
    configure_logging()
    assert (log_flags(), is_for_people()) == ([], True)
    configure_logging(logging.WARNING, "json")
    assert (log_flags(), is_for_people()) == (["--quiet", "--log-format", "json"], False)


def test_a_table_is_aligned_text_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_table(["task", "turns", "note"], [["打开", 12, None], ["wifi", 3, "seen"]])
    assert capsys.readouterr().out == "task  turns  note\n打开     12\nwifi      3  seen\n"
    print_table(["empty"], [])
    assert capsys.readouterr().out == "empty\n"


def test_a_table_is_drawn_on_a_terminal_without_reading_markup_into_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    print_table(["task", "turns"], [["[bold]wifi", 3]])
    shown = terminal.getvalue()
    assert "[bold]wifi" in shown
    assert "───" in shown
    assert "\x1b[3" not in shown


def test_numbers_are_rounded_to_six_digits_wherever_they_are() -> None:
    given = {"a": [0.9206349206349206, 1.25e-05], "b": {"c": 1234567.5}, "d": [True, 3]}
    assert rounded(given) == {"a": [0.920635, 1.25e-05], "b": {"c": 1234567.5}, "d": [True, 3]}


def test_a_progress_bar_is_shown_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    terminal = on_terminal(monkeypatch)
    configure_logging()
    with progress_bar("warm-up", 3) as bar:
        bar.advance()
        bar.advance(2, note="loss 0.100")
    assert "warm-up" in terminal.getvalue()
    assert "3/3" in terminal.getvalue()
    assert "loss 0.100" in terminal.getvalue()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("level", "log_format"), [(logging.WARNING, "text"), (20, "json")])
def test_quiet_and_json_draw_no_bar(
    monkeypatch: pytest.MonkeyPatch, level: int, log_format: LogFormat
) -> None:
    terminal = on_terminal(monkeypatch)
    configure_logging(level, log_format)
    with progress_bar("warm-up", 3) as bar:
        bar.advance()
    assert terminal.getvalue() == ""


def test_without_a_terminal_a_bar_draws_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    with progress_bar("warm-up", 3) as bar:
        bar.advance()
    assert capsys.readouterr().err == ""
