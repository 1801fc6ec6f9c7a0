"""Events in, rows and stream states out: pure, the same for the live projection, a rebuild and verify."""
