"""OpenEnv: any environment server of that protocol, which judges its own episodes."""
