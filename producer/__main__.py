"""`python -m producer` is `cua-train`."""

from producer.cli import main

main()
