"""The one key that the stand-in for Tinker takes."""

from typing import Final

KEY: Final = "tml-very-secret"
