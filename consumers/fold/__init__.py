"""The fold: log records in, rows and stream states out. Used by projection, rebuild and verify.

A record passes through `parse`, `order`, `apply` (`transition`, `projectors`) and `rows`, in this
direction only; `fold` connects the stages.
"""
