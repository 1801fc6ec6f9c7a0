"""A Linux desktop in a display of its own, with small applications of Debian."""
