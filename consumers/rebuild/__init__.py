"""The tables made again from the log: to take the place of the live ones (`rebuild`), or to judge them (`verify`)."""
