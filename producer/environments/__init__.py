"""Devices to operate: one interface, the simulated phone (`android_sim/`), and the threads that drive them."""
