"""The entry point of `cua-project` and of `python -m consumers`."""

import os

try:
    from schemas.interrupts import run_command_line
except KeyboardInterrupt:
    os._exit(130)


def main() -> None:
    """Import the command line and run it."""
    run_command_line("consumers.cli")


if __name__ == "__main__":
    main()
