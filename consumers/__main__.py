"""`python -m consumers` is `cua-project`."""

from consumers.cli import main

main()
