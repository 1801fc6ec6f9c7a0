"""Phones and emulators that an adb server knows."""
