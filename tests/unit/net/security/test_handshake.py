"""Both ends make sure of each other before any frame is interpreted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from omen.net.security.handshake import Handshake, certified_names, name_in_certificate
from omen.net.security.hello import Hello, Reason, Refused, write_hello
from omen.protocol.membership.ring import place_of


def hello(name: str) -> Hello:
    return Hello("omen", place_of(name), name, 7, "127.0.0.1:1", 5, 1)


def meet(one: Handshake, other: Handshake) -> tuple[Hello | None, Hello | None]:
    """Two ends talk until both know each other, or one has had enough."""
    to_one, to_other = bytearray(other.opening), bytearray(one.opening)
    known: list[Hello | None] = [None, None]
    for _ in range(6):
        for side, (end, incoming, outgoing) in enumerate(((one, to_one, to_other), (other, to_other, to_one))):
            if known[side] is None:
                answer, known[side] = end.take(incoming)
                outgoing += answer
    return known[0], known[1]


def test_both_ends_prove_the_secret_and_any_that_is_believed_will_do() -> None:
    old, new = b"o" * 32, b"n" * 32
    for mine, yours in (((old,), (old,)), ((old,), (new, old)), ((new, old), (old, new))):
        one = Handshake(hello("ann"), True, secrets=mine)
        other = Handshake(hello("bob"), False, secrets=yours)
        met = meet(one, other)
        assert met[0] is not None and met[0].name == "bob"
        assert met[1] is not None and met[1].name == "ann"
    differing: Sequence[tuple[tuple[bytes, ...], tuple[bytes, ...]]] = (((old,), (new,)), ((old,), ()), ((), (new,)))
    for ours, theirs in differing:
        with pytest.raises(Refused, match="secret") as refused:
            meet(Handshake(hello("ann"), True, secrets=ours), Handshake(hello("bob"), False, secrets=theirs))
        assert refused.value.reason is Reason.SECRET


def test_neither_a_recording_nor_an_echo_passes_for_a_proof() -> None:
    secrets = (b"s" * 32,)
    dialler, acceptor = Handshake(hello("ann"), True, secrets=secrets), Handshake(hello("bob"), False, secrets=secrets)
    proof, _ = dialler.take(bytearray(acceptor.opening))
    assert acceptor.take(bytearray(dialler.opening + proof))[1] is not None
    again = Handshake(hello("bob"), False, secrets=secrets)
    with pytest.raises(Refused) as refused:
        again.take(bytearray(dialler.opening + proof))
    assert refused.value.reason is Reason.SECRET
    mirror = Handshake(hello("ann"), True, secrets=secrets)
    with pytest.raises(Refused, match="this is node 'ann' itself"):
        mirror.take(bytearray(mirror.opening))
    first = Handshake(hello("ann"), True, secrets=secrets)
    own_proof, _ = first.take(bytearray(Handshake(hello("eve"), False, secrets=secrets).opening))
    with pytest.raises(Refused, match="secret"):
        first.take(bytearray(own_proof))


def test_a_certificate_gives_its_holder_the_names_in_it_and_no_other() -> None:
    ours = {"subjectAltName": (("URI", name_in_certificate("omen", "a/b é")), ("DNS", "other")), "subject": ()}
    assert certified_names(ours, "omen") == ("a/b é",)
    assert certified_names(ours, "elsewhere") == ()
    plain = {"subject": ((("commonName", "n*"),),), "subjectAltName": (("DNS", "n1.example"),)}
    names = certified_names(plain, "omen")
    Handshake(hello("ann"), False, certified=names).take(bytearray(write_hello(hello("n*"))))
    for name in ("n1", "n1.example.org"):
        with pytest.raises(Refused, match="certificate shown is for") as refused:
            Handshake(hello("ann"), False, certified=names).take(bytearray(write_hello(hello(name))))
        assert refused.value.reason is Reason.IDENTITY
    many = certified_names({"subjectAltName": (("URI", name_in_certificate("omen", "client-*")),)}, "omen")
    assert Handshake(hello("ann"), False, certified=many).take(bytearray(write_hello(hello("client-7")))) is not None


def test_a_node_of_an_older_revision_is_refused_where_a_secret_is_needed() -> None:
    older = msgspec.structs.replace(hello("bob"), revision=0)
    with pytest.raises(Refused, match="this cluster has a secret, and the other end is set to none"):
        Handshake(hello("ann"), False, secrets=(b"s" * 32,)).take(bytearray(write_hello(older)))


def test_brackets_in_a_certified_name_stand_for_themselves_and_the_star_does_not() -> None:
    """Before: a certificate for `db[1]` was good for `db1`, and not for `db[1]`."""

    def fits(certified: str, name: str) -> bool:
        uri = name_in_certificate("omen", certified)
        names = certified_names({"subjectAltName": (("URI", uri),)}, "omen")
        shake = Handshake(hello("ann"), True, certified=names)
        try:
            shake.take(bytearray(Handshake(hello(name), False).opening))
        except Refused as refused:
            assert repr(certified) in str(refused)
            return False
        return True

    assert fits("db[1]", "db[1]") and not fits("db[1]", "db1")
    assert fits("a?", "a?") and not fits("a?", "ab")
    assert fits("client-*", "client-7") and fits("client-*[x]", "client-9[x]") and not fits("client-*", "other")
