"""Devices rented from GBox: Android phones and Linux desktops."""
