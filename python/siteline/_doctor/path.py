"""The way to the service: proxy, name, connection, TLS. It goes as a request does; none is sent."""

from __future__ import annotations

from datetime import datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING

from siteline._doctor.key import SOON
from siteline._doctor.seen import Seen, fail, ok, skipped, warn
from siteline._times import to_minute

if TYPE_CHECKING:
    from siteline._doctor.look import Look

__all__: list[str] = []

_BY_PROXY = "the proxy does it"
_BY_REQUESTS = "the requests show it: they go through a SOCKS proxy"


def proxy(look: Look) -> Seen:
    """Which proxy is used, and whether it connects to the service."""
    planned = look.handle.planned_path()
    used = planned["proxy"]
    if used is None:
        return ok("none")
    if look.offline:
        return ok(f"{used}, not tried: offline")
    way, error = look.way()
    if error is not None and way["failed"] == "proxy":
        return fail(error)
    if used.startswith("socks"):
        return ok(f"{used}; {_BY_REQUESTS}")
    return ok(f"{used}, which connects to {way['service']}")


def name(look: Look) -> Seen:
    """Whether the name of the service has an address."""
    way, error = look.way()
    host = way["service"].rpartition(":")[0].strip("[]")
    if way["proxy"] is not None:
        return skipped(_BY_PROXY)
    if error is not None and way["failed"] == "name":
        return fail(error, do="Correct base_url=, or the name service of this machine.")
    if _is_address(host):
        return ok(f"{host} is an address")
    return ok(f"{host} is {', '.join(way['addresses'])}") if way["addresses"] else _not_tried()


def tcp(look: Look) -> Seen:
    """Whether it accepts connections."""
    way, error = look.way()
    if way["proxy"] is not None:
        return skipped(_BY_PROXY)
    if error is not None and way["failed"] == "tcp":
        return fail(error, do="Nothing listens there, or a firewall is between: see base_url=.")
    return ok(f"{way['connected']} accepts connections") if way["connected"] else _not_tried()


def tls(look: Look) -> Seen:
    """Whether the certificate verifies by the client's own trust, and how long it still does."""
    way, error = look.way()
    if error is not None:
        return fail(error)
    if (way["proxy"] or "").startswith("socks"):
        return skipped(_BY_REQUESTS)
    shake = way["tls"]
    if shake is None:
        if look.client.base_url.startswith("http://") and not _is_near(look):
            return warn("plain HTTP: anybody between can read the token", "Use https://.")
        return skipped("plain HTTP, on this machine")
    seen = f"{shake['version']}, verified by {way['trust']}"
    if shake["not_after"] is None:
        return ok(seen)
    ends = datetime.fromisoformat(shake["not_after"])
    seen += f"; the certificate is of {shake['issuer']}, until {to_minute(ends)} UTC"
    if ends - look.handle.settings()["now"] < SOON:
        return warn(seen, "Whoever runs the service must renew it.")
    return ok(seen)


def _not_tried() -> Seen:
    """The certificates to trust are read before anything is opened."""
    return skipped("not tried: there is no handshake without certificates to trust")


def _is_near(look: Look) -> bool:
    host: str = look.way()[0]["service"].rpartition(":")[0].strip("[]")
    if _is_address(host):
        return ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
