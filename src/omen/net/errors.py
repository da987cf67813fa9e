"""What an application is told when a broker cannot do what it is asked."""

from __future__ import annotations

from omen.errors import OmenError


class NotJoined(OmenError):
    """No member of the cluster could be reached in time, or none took this node in."""


class NameTaken(NotJoined):
    """Another living node goes by this node's name."""


class Stopped(OmenError):
    """The broker is not running."""


class NotHeld(OmenError):
    """A node has left, and its neighbours do not hold all that it had accepted."""


class SecondConsumer(OmenError):
    """Two consumers wait for messages at a time."""
