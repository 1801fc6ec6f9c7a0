"""The small policy of the pages that one click solves, built like the phone's."""
