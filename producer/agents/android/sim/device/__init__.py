"""The phone as an Environment: actions and shell commands in, screenshots and text out."""
