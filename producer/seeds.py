"""Seeds from what they are for.

The same place in the same training draws the same numbers, in whatever order places are visited.

So a resumed run needs no stored generator, and training and evaluation never share a seed (their
names differ).
"""

import hashlib
import json


def derived_seed(*parts: object) -> int:
    """63 bits from the parts' text: `derived_seed(0, "train", step, group)`."""
    digest = hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
