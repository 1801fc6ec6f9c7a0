"""Events in, rows and stream states out.

Pure, the same for the live projection, a rebuild and verify.
"""
