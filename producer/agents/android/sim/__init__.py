"""A simulated Android phone: rendered screens varied by seed, and a device's shell.

Imports go one way: `oracle` (agents that read the true state) > `device` (actions, shell and the
Environment) > `painting` (scene to pixels) > `screens` (state to scene) > `state` (the phone).
No network, no real device, no torch.
"""
