"""Names of trainings: which are valid, and new ones.

A name becomes a folder below CUA_HOME/runs and the key of the training's UUIDv5.
"""

import unicodedata
from datetime import datetime

MAX_CHARACTERS = 100
MAX_BYTES = 240
"""Of its UTF-8: a file system takes 255 bytes for the name of a folder."""
PUNCTUATION = frozenset("._-")
RULE = "use letters and digits of any script and, after the first character, '.', '_' and '-'"


def check_training_name(name: str) -> str:
    """The name in Unicode's NFC form; ValueError when it is not valid."""
    normalised = unicodedata.normalize("NFC", name)
    if not normalised:
        message = f"the name is empty; {RULE}"
        raise ValueError(message)
    for position, character in enumerate(normalised):
        if not _is_allowed(character, first=position == 0):
            message = (
                f"{name!r} {'starts with' if position == 0 else 'contains'} {character!r}; {RULE}"
            )
            raise ValueError(message)
    num_bytes = len(normalised.encode())
    if len(normalised) > MAX_CHARACTERS or num_bytes > MAX_BYTES:
        message = (
            f"the name has {len(normalised)} characters and {num_bytes} bytes in UTF-8; at most"
            f" {MAX_CHARACTERS} characters and {MAX_BYTES} bytes are possible"
        )
        raise ValueError(message)
    return normalised


def new_training_name(model_name: str, now: datetime) -> str:
    """An unused name, made of the policy's name, the time and 16 random bits."""
    import secrets  # kept out of --help

    last = unicodedata.normalize("NFC", model_name.rstrip("/").rpartition("/")[2].lower())
    policy = "".join(
        character if _is_allowed(character, first=False) else "-" for character in last
    )
    policy = policy.encode()[:40].decode(errors="ignore").strip("._-") or "training"
    return f"{policy}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _is_allowed(character: str, *, first: bool) -> bool:
    category = unicodedata.category(character)
    if category[0] == "L" or category == "Nd":
        return True
    # Marks belong to the letter before them: vowel signs of Hindi or Thai.
    return not first and (category[0] == "M" or character in PUNCTUATION)
