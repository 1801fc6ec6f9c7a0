# Every target sets .venv up by itself when it is missing or older than pyproject.toml.
