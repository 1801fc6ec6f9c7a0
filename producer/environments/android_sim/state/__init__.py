"""The phone's state and how it changes; knows no pixels and no shell."""
