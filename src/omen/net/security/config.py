"""What a settings file says about security: certificates, a secret, refused names, access rules."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from pathlib import Path

from omen.errors import InvalidInput
from omen.net.names import split_address

OFF, MARK, REQUIRE = "off", "mark", "require"
VERIFY = (OFF, MARK, REQUIRE)


@dataclass(frozen=True)
class Security:
    """Which nodes may connect. With certificates both ends show one; with a secret both prove that they know it."""

    authorities: tuple[str, ...] = ()
    """Files with the certificates of authorities that are believed; several while keys are rotated."""
    certificate: str = ""
    """The file of this node's certificate. The name in it must be the node's."""
    key: str = ""
    """The file of the certificate's private key."""
    revoked: tuple[str, ...] = ()
    """Files with lists of revoked certificates, one of each authority (`omen keys revoke`). Empty: none is revoked."""
    secrets: tuple[str, ...] = ()
    """Files with a secret each: the first is proven to others, any is believed."""
    refuse: tuple[str, ...] = ()
    """Patterns of node names that are refused whatever they can show."""
    watch_s: float = 2.0
    """How often the files are looked at for changes."""
    open: bool = False
    """Listen beyond loopback although any process that reaches the port can be a member."""
    sign: bool = False
    """Sign what this node publishes, with the key of its certificate."""
    verify: str = "off"
    """What is done with signatures of others: `off`, nothing; `mark`, forged publications are refused, the others say
    whether they are verified; `require`, unsigned ones are refused too."""

    def __post_init__(self) -> None:
        if self.verify not in VERIFY:
            raise InvalidInput(f"security.verify {self.verify!r}: must be one of {', '.join(VERIFY)}")
        if (self.sign or self.verify != OFF) and not self.certificate:
            what = "sign" if self.sign else "verify"
            raise InvalidInput(f"security.{what}: publications are signed by the keys of certificates: set them too")
        parts = {"authorities": self.authorities, "certificate": self.certificate, "key": self.key}
        missing = [name for name, value in parts.items() if not value]
        if 0 < len(missing) < len(parts):
            raise InvalidInput(f"security.{missing[0]}: certificates need authorities, certificate and key together")
        if self.revoked and not self.certificate:
            raise InvalidInput("security.revoked: there is nothing to revoke without certificates")

    @property
    def has_certificates(self) -> bool:
        """Whether the node shows a certificate, and asks for one."""
        return bool(self.certificate)

    @property
    def is_protected(self) -> bool:
        """Whether certificates or a secret keep strangers out."""
        return bool(self.certificate or self.secrets)

    @property
    def files(self) -> tuple[str, ...]:
        """All files that are read, to be looked at for changes."""
        return tuple(
            path for path in (*self.authorities, *self.revoked, self.certificate, self.key, *self.secrets) if path
        )

    def relative_to(self, folder: Path) -> Security:
        """File names as they stand in a file of that folder."""

        def place(path: str) -> str:
            return str(folder / path) if path else path

        return replace(
            self,
            authorities=tuple(map(place, self.authorities)),
            revoked=tuple(map(place, self.revoked)),
            certificate=place(self.certificate),
            key=place(self.key),
            secrets=tuple(map(place, self.secrets)),
        )


@dataclass(frozen=True)
class Rule:
    """For topics that match a pattern: names of certificates that may publish, and that may subscribe."""

    topics: tuple[str, ...] = ()
    publish: tuple[str, ...] = ()
    subscribe: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.topics:
            raise InvalidInput("access.topics: a rule says which topics it is for, such as ['prices/*']")


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address."""
    host, _ = split_address(address)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


DEFAULT_CLUSTER = "omen"


def check_exposure(listen: str, security: Security, rules: tuple[Rule, ...], cluster: str) -> None:
    """Raises InvalidInput where a node would admit any process without having been told to.

    Clusters of one name that meet become one: two that never chose a name are not to meet by chance.
    """
    if not is_loopback(listen) and not security.is_protected and cluster == DEFAULT_CLUSTER and security.open:
        raise InvalidInput(
            f"listen {listen!r} can be reached from other machines, and clusters of one name become one where they"
            f" meet: give yours another name than {cluster!r} in `cluster`, or set certificates or a secret"
        )
    if not is_loopback(listen) and not security.is_protected and not security.open:
        raise InvalidInput(
            f"listen {listen!r} can be reached from other machines, and any process there could be a member: set"
            " certificates or a secret in [security] (`omen keys` makes them), or say open = true there"
        )
    if rules and not security.has_certificates:
        raise InvalidInput("access rules go by the names in certificates: set them in [security]")
