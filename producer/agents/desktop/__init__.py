"""A Linux desktop in its own display, with small applications from Debian."""
