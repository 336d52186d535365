"""The checks of the service's replies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from siteline import errors
from siteline._counts import counted
from siteline._doctor.seen import Seen, fail, ok, skipped, warn
from siteline._times import to_minute
from siteline.credentials import MutualTls

if TYPE_CHECKING:
    from siteline._doctor.look import Look

_NOTICED, _HOPELESS = 5, 86_400
"""Clock differences in seconds: the limits for a report and for a correction."""
_NO_SUCH_ENDPOINT = (404, 405, 410, 501)
_TOKEN_PATH = "/api/customer/oauth/token"
_ANOTHER = "Another service may answer there: compare base_url= and its path."
_DISCOVERY = "customer.discovery.read"
_UNSIGNED = "the signer is an async function, which only an AsyncClient awaits"


def service(look: Look) -> Seen:
    facts, error = look.exchange
    if error is None and (facts is None or facts["was_cached"]):
        # No token was requested, so the discovery request is the first one.
        error = look.discovery.error
    if error is None:
        return ok("it answers as documented")
    if isinstance(error, errors.TransportError):
        return fail(error)
    is_rejected = isinstance(error, errors.RequestRejected) and error.status in _NO_SUCH_ENDPOINT
    if is_rejected or isinstance(error, errors.ProtocolError):
        return fail(error, do=getattr(error, "hint", None) or _ANOTHER)
    if isinstance(error, errors.ServiceError):
        return ok(f"it answers with an error: {error.code or error.status or error.message}")
    if isinstance(error, errors.ConfigError) and not isinstance(error, errors.CredentialError):
        return skipped(_UNSIGNED, blocks=_UNSIGNED)  # An async signer is no fault.
    return skipped("no request could be sent")


def clock(look: Look) -> Seen:
    skew = look.client.clock_skew
    if skew is None:
        return skipped("no reply contained the service's time")
    is_noticed = abs(skew) > look.skew_error
    is_refused = isinstance(look.exchange.error, errors.AuthenticationError) and is_noticed
    if abs(skew) <= _NOTICED and not is_refused:
        return ok("agrees with the service's clock")
    direction = "behind" if skew > 0 else "ahead of"
    seen = f"this machine's clock is {abs(skew):,.0f} s {direction} the service's clock"
    do = "Set this machine's clock, or use a time server."
    if is_refused or abs(skew) > _HOPELESS:
        refusal = "; the service refused the assertion" if is_refused else ""
        return fail(errors.ClockSkewError(f"{seen}{refusal}.", skew_seconds=skew), do=do)
    return warn(f"{seen}; siteline corrects for it", do)


def token(look: Look) -> Seen:
    facts, error = look.exchange
    has_certificate = isinstance(look.handle.credential(), MutualTls)
    if isinstance(error, errors.AuthenticationError) and not has_certificate:
        causes = "\n".join(f"- {cause}" for cause in _causes(look))
        return fail(error, do=f"The service does not say what is wrong. Compare:\n{causes}")
    if error is not None:
        return fail(error)
    if facts is None:
        return skipped("not needed: the client certificate is enough")
    origin = "; none was requested" if facts["was_cached"] else ""
    granted = " ".join(facts["scopes"] or look.settings["scopes"])
    return ok(f"there is one, valid for {facts['left']} s, for {granted}{origin}")


def _causes(look: Look) -> Iterator[str]:
    """The possible causes of a refused assertion, suspicious ones first."""
    audience = look.settings["audience"]
    if audience not in (None, look.client.base_url + _TOKEN_PATH):
        yield f"audience= sets aud to {audience}: the service must expect this address"
    if look.enrolled_jwk is None:
        kid = getattr(look.handle.credential(), "kid", "")
        yield f"the key {kid} must be the enrolled one: --enrolled-jwk FILE compares them"
    yield f"the subject {look.client.subject} must be the one that the enrollment returned"
    yield "an administrator must have approved the integration, and must not have revoked it"
    skew = look.client.clock_skew
    if skew is None:
        yield "this machine's clock must be right: the service has not shown its time"
    elif abs(skew) > look.skew_error:
        yield f"this machine's clock must be right: it differs by {abs(skew):,.0f} s"


def discovery(look: Look) -> Seen:
    table, error = look.discovery
    if isinstance(error, errors.ScopeError) and _DISCOVERY not in look.settings["scopes"]:
        return warn(error.message, f"The scope {_DISCOVERY} was not requested.")
    if error is not None:
        return fail(error)
    seen, do = f"it lists {len(table):,} series", "\n".join(look.discovery_warnings)
    return warn(seen, do) if do else ok(seen)


def data(look: Look) -> Seen:
    if look.client.allowance.left == 0:
        return skipped("allowance failed")
    page, error = look.page
    if error is not None:
        return fail(error)
    start, end = look.hour()
    hour = f"from {to_minute(start)} to {to_minute(end)} UTC"
    if not len(page):
        do = "Nothing was measured then, or this subject may read nothing."
        return warn(f"a page without points {hour}", do)
    return ok(f"{counted(page.report.points, 'point')} of {page.report.series:,} series {hour}")
