"""A policy that Tinker samples and trains, over its own SDK. Needs no torch."""
