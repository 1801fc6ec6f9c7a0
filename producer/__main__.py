"""The entry point of `cua-train` and of `python -m producer`."""

import os

try:
    from schemas.interrupts import run_command_line
except KeyboardInterrupt:
    os._exit(130)


def main() -> None:
    """Import the command line and run it."""
    run_command_line("producer.cli")


if __name__ == "__main__":
    main()
