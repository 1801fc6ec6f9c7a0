"""Seeds derived from what they are used for, such as (run seed, "train", step, group).

A seed does not depend on the order in which seeds are drawn. So a resumed run needs no generator
state, and training and evaluation never share a seed, because their names differ.
"""

import hashlib
import json


def derived_seed(*parts: object) -> int:
    """A 63-bit seed from the parts' text: `derived_seed(0, "train", step, group)`."""
    digest = hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
