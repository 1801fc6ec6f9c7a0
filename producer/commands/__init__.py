"""The commands of `cua-train`, one file each: their arguments, output and exit codes."""
