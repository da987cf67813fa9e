"""Overlays kept alive by the nodes themselves.

Everything in here is a state machine: what happened comes in, what to do comes out. There is no clock, no socket and no
global randomness, so the same code runs in the simulator and over TCP.
"""
