"""Devices that agents operate: the Environment interface, its implementations and wrappers."""
