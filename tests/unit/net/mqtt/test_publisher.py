"""What a client is told of a publication that failed."""

from __future__ import annotations

import pytest
from mqtt5 import PubAckReasonCode

from omen.errors import Denied, InvalidInput, OmenError
from omen.net.errors import Stopped
from omen.net.mqtt.publisher import reason_of


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Denied("no"), PubAckReasonCode.NOT_AUTHORIZED),
        (InvalidInput("too large"), PubAckReasonCode.IMPLEMENTATION_SPECIFIC_ERROR),
        (Stopped("leaving"), PubAckReasonCode.UNSPECIFIED_ERROR),
    ],
)
def test_the_reason_tells_whether_it_is_of_use_to_send_the_message_again(
    error: OmenError, reason: PubAckReasonCode
) -> None:
    assert reason_of(error) is reason
