"""An OpenAI-compatible server of a local policy and its adapters."""
