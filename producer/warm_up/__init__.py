"""Built-in policies, made once per CUA_HOME. Their warm-up is recorded as a training."""
