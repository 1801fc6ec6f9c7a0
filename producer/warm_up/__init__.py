"""Built-in policies: made once per CUA_HOME; a warm-up is recorded as a training."""
