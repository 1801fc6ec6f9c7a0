"""A simulated Android phone: a state machine of real rendered screens, varied by seed, that answers a device's shell commands.

`phone` is the state, `screens` turn it into scenes, `paint` turns scenes into pixels, `gestures` turn actions into changes, `shell` answers
like a device. No network, no device, no torch.
"""

from producer.environments.android_sim.device.sim import AndroidSim
from producer.environments.android_sim.screens.widget import Element

__all__ = ["AndroidSim", "Element"]
