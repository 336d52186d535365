"""The checks of the way to the service. They send no request."""

from __future__ import annotations

from datetime import datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING

from siteline._doctor.local import SOON
from siteline._doctor.seen import Seen, fail, ok, skipped, warn
from siteline._times import to_minute

if TYPE_CHECKING:
    from siteline._doctor.look import Look

_BY_REQUESTS = "checked by the requests, which use a SOCKS proxy"


def proxy(look: Look) -> Seen:
    used = look.handle.look_at("path")["proxy"]
    if look.offline:
        return ok(f"{used}, not tried: offline" if used else "none", blocks="offline")
    way, error = look.way
    if used is None:
        return ok("none")
    if error is not None and way["failed"] == "proxy":
        return fail(error)
    if used.startswith("socks"):
        return ok(f"{used}; {_BY_REQUESTS}")
    return ok(f"{used}, which connects to {way['service']}")


def tcp(look: Look) -> Seen:
    way, error = look.way
    if way["proxy"] is not None:
        return skipped("the proxy does it")
    if error is not None and way["failed"] in ("name", "tcp"):
        return fail(error, do="Check base_url=, the network of this machine, and the firewalls.")
    if way["connected"] is None:
        return skipped("not tried: there are no certificates to trust")
    return ok(f"{way['service']} accepts connections at {way['connected']}")


def tls(look: Look) -> Seen:
    """Checks the certificate as the client does, and the time until its end."""
    way, error = look.way
    if error is not None:
        return fail(error)
    if (way["proxy"] or "").startswith("socks"):
        return skipped(_BY_REQUESTS)
    shake = way["tls"]
    if shake is None:
        addresses = map(ip_address, way["addresses"])
        if way["proxy"] is None and all(address.is_loopback for address in addresses):
            return skipped("plain HTTP, on this machine")
        return warn("plain HTTP: anybody in between can read the token", "Use https://.")
    seen = f"{shake['version']}, verified by {way['trust']}"
    if shake["not_after"] is None:
        return ok(seen)
    ends = datetime.fromisoformat(shake["not_after"])
    seen += f"; issued by {shake['issuer']}, valid until {to_minute(ends)} UTC"
    if ends - look.settings["now"] < SOON:
        return warn(seen, "The operator of the service must renew it.")
    return ok(seen)
