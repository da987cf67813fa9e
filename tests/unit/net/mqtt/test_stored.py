"""Which messages a session has had, by when it was stored."""

from __future__ import annotations

import pytest

from omen.net.mqtt.stored import ON_ITS_WAY_S, SessionHead, complete_until


@pytest.mark.parametrize(("saved_at", "time"), [(1000.0, 1000.0 - ON_ITS_WAY_S), (0.0, 0.0)])
def test_a_session_has_had_what_was_published_well_before_it_was_stored(saved_at: float, time: float) -> None:
    """A time of 0 is one that an earlier version did not write."""
    assert complete_until(SessionHead("me", "n1", True, 60, None, saved_at=saved_at)) == time
