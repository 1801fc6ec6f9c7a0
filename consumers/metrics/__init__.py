"""`/metrics` and `/healthz` of `cua-project run` and `up`."""
