"""The commands of `cua-train`, a file each.

What they take, what they print, which exit code they end in.
"""
