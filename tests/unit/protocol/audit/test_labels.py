"""Labels of pieces, at one node."""

from __future__ import annotations

from omen.protocol.audit.labels import SILENT_PERIODS, PieceLabels
from omen.protocol.messages.overlay import LabelDigest, LinkClose
from omen.protocol.repair.links import Links
from unit.protocol.contexts import describe, make_context, ref, sent


def test_a_link_to_an_incarnation_that_never_began_is_given_up() -> None:
    """Digests of the incarnation there is are taken for late ones of an earlier incarnation, so none ever counts."""
    context = make_context(2, (1,), audit=True)
    context.peer_table.learn(describe(1, (1,)))
    links = Links(context)
    links.preset(ref(1, incarnation=7), ())
    labels = PieceLabels(context, links)
    for _ in range(SILENT_PERIODS + 1):
        labels.next_period()
        labels.on_digest(1, LabelDigest(0, 1, 1))
        assert links.is_up(1)
    sent(context.out)
    labels.next_period()
    assert not links.links
    assert sent(context.out) == [(1, LinkClose(1))]
