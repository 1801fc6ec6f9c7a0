"""The phone as an Environment: actions in, screenshots and shell output out."""
