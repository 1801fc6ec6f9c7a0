"""The monitor's JSON: the facts of its pages, for programs."""
