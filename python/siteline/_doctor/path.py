"""The checks of the way to the service. They send no request."""

from __future__ import annotations

from datetime import datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

from siteline._doctor.local import SOON
from siteline._doctor.seen import Seen, fail, ok, skipped, warn
from siteline._times import to_minute

if TYPE_CHECKING:
    from siteline._doctor.look import Look

_BY_PROXY = "the proxy does it"
_BY_REQUESTS = "checked by the requests, which use a SOCKS proxy"
_NOT_TRIED = "not tried: there are no certificates to trust"


def proxy(look: Look) -> Seen:
    used = look.handle.planned_path()["proxy"]
    if used is None:
        return ok("none")
    if look.offline:
        return ok(f"{used}, not tried: offline")
    way, error = look.way
    if error is not None and way["failed"] == "proxy":
        return fail(error)
    if used.startswith("socks"):
        return ok(f"{used}; {_BY_REQUESTS}")
    return ok(f"{used}, which connects to {way['service']}")


def name(look: Look) -> Seen:
    way, error = look.way
    if way["proxy"] is not None:
        return skipped(_BY_PROXY)
    if error is not None and way["failed"] == "name":
        return fail(error, do="Check the network of this machine, and the host in base_url=.")
    host = _host(look)
    if _address(host):
        return ok(f"{host} is an address")
    addresses = ", ".join(way["addresses"])
    return ok(f"{host} is {addresses}") if addresses else skipped(_NOT_TRIED)


def tcp(look: Look) -> Seen:
    way, error = look.way
    if way["proxy"] is not None:
        return skipped(_BY_PROXY)
    if error is not None and way["failed"] == "tcp":
        return fail(error, do="Check the port in base_url=, and the firewalls in between.")
    connected = way["connected"]
    return ok(f"{connected} accepts connections") if connected else skipped(_NOT_TRIED)


def tls(look: Look) -> Seen:
    """Checks the certificate as the client does, and the time until its end."""
    way, error = look.way
    if error is not None:
        return fail(error)
    if (way["proxy"] or "").startswith("socks"):
        return skipped(_BY_REQUESTS)
    shake = way["tls"]
    if shake is None:
        if look.client.base_url.startswith("http://") and not _is_near(_host(look)):
            return warn("plain HTTP: anybody in between can read the token", "Use https://.")
        return skipped("plain HTTP, on this machine")
    seen = f"{shake['version']}, verified by {way['trust']}"
    if shake["not_after"] is None:
        return ok(seen)
    ends = datetime.fromisoformat(shake["not_after"])
    seen += f"; issued by {shake['issuer']}, valid until {to_minute(ends)} UTC"
    if ends - look.settings["now"] < SOON:
        return warn(seen, "The operator of the service must renew it.")
    return ok(seen)


def _host(look: Look) -> str:
    host: str = look.way[0]["service"].rpartition(":")[0].strip("[]")
    return host


def _is_near(host: str) -> bool:
    address = _address(host)
    if address is not None:
        return address.is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
