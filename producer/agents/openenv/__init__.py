"""OpenEnv: any environment server that speaks this protocol and judges its own episodes."""
