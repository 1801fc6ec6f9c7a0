"""What an error advises."""

from schemas.advice import did_you_mean


def test_a_hint_is_given_for_a_near_name_alone() -> None:
    assert did_you_mean("Groupsize", ["group_size", "seed"]) == " Did you mean 'group_size'?"
    assert did_you_mean("xyzzy", ["group_size", "seed"]) == ""
    assert did_you_mean("x", []) == ""


def test_a_name_that_holds_what_was_written_is_near() -> None:
    known = ["train_02_enable_wifi", "run"]
    assert did_you_mean("WiFi", known) == " Did you mean 'train_02_enable_wifi'?"
    assert did_you_mean("un", ["unbounded_sequence_length"]) == ""  # two letters are in much
