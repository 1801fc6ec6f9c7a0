"""The default policy: built, warmed up by imitation and kept per home, so that RL begins with something to improve."""
