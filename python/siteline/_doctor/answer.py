"""The checks of the service's replies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from siteline import errors
from siteline._counts import counted
from siteline._doctor.local import UNSIGNED, other_audience
from siteline._doctor.seen import Seen, fail, message_of, ok, skipped, warn
from siteline._escape import escaped
from siteline._times import to_minute
from siteline.credentials import MutualTls

if TYPE_CHECKING:
    from siteline._doctor.look import Look

_NOTICED, _HOPELESS = 5, 86_400
"""Clock differences in seconds: the limits for a report and for a correction."""
_NO_SUCH_ENDPOINT = (404, 405, 410, 501)
_ANOTHER = "Another service or a login page may answer there: compare base_url= and its path."
_NOT_NEEDED = "not needed: the client certificate is enough"
_DISCOVERY = "customer.discovery.read"
_MOST = 5
_UNUSUAL = (
    *("numbers_as_text", "values_missing", "minimum_above_maximum", "value_outside_bounds"),
    *("negative_counts", "outside_range"),
)


def service(look: Look) -> Seen:
    facts, error = look.exchange
    if error is None and (facts is None or facts["was_cached"]):
        # No token was requested, so the discovery request is the first one.
        error = look.discovery.error
    if error is None:
        return ok("it answers as documented")
    is_rejected = isinstance(error, errors.RequestRejected) and error.status in _NO_SUCH_ENDPOINT
    if isinstance(error, errors.ProtocolError) or is_rejected:
        return fail(error, do=_ANOTHER)
    if not isinstance(error, errors.ServiceError):
        # Without a signature nothing was sent. An async signer is no fault.
        is_unsigned = isinstance(error, errors.ConfigError)
        if is_unsigned and not isinstance(error, errors.CredentialError):
            return skipped(UNSIGNED, blocks=UNSIGNED)
        return fail(error)
    if isinstance(error, errors.AuthenticationError) and error.code is None:
        return warn(f"it answers {error.status} without an error code", _ANOTHER)
    return ok(f"it answers: {error.code or error.status or message_of(error)}")


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
    has_certificate = isinstance(look.handle.credential, MutualTls)
    if isinstance(error, errors.AuthenticationError) and not has_certificate:
        causes = "\n".join(f"- {cause}" for cause in _causes(look))
        return fail(error, do=f"The service does not say what is wrong. Compare:\n{causes}")
    if isinstance(error, errors.ScopeError):
        return ok("the credential is accepted")
    if error is not None:
        return fail(error)
    if facts is None:
        return skipped(_NOT_NEEDED)
    if facts["was_cached"]:
        return ok(f"there is one, valid for {facts['left']} s; none was requested")
    return ok(f"issued, valid for {facts['lifetime']} s")


def _causes(look: Look) -> Iterator[str]:
    """The possible causes of a refused assertion, suspicious ones first."""
    audience = other_audience(look)
    if audience is not None:
        yield f"audience= sets aud to {audience}: the service must expect this address"
    if look.enrolled_jwk is None:
        kid = getattr(look.handle.credential, "kid", "")
        yield f"the key {kid} must be the enrolled one: --enrolled-jwk FILE compares them"
    yield f"the subject {look.client.subject} must be the one that the enrollment returned"
    yield "an administrator must have approved the integration, and must not have revoked it"
    skew = look.client.clock_skew
    if skew is None:
        yield "this machine's clock must be right: the service has not shown its time"
    elif abs(skew) > look.skew_error:
        yield f"this machine's clock must be right: it differs by {abs(skew):,.0f} s"


def scopes(look: Look) -> Seen:
    requested = " ".join(look.settings["scopes"])
    facts, error = look.exchange
    if isinstance(error, errors.ScopeError):
        return fail(error)
    if facts is None:
        return skipped(_NOT_NEEDED)
    if facts["scopes"] is None:
        return ok(f"requested: {requested}; the service does not list the granted ones")
    return ok(f"granted: {requested}")


def discovery(look: Look) -> Seen:
    listed, error = look.discovery
    if isinstance(error, errors.ScopeError) and _DISCOVERY not in look.settings["scopes"]:
        return warn(message_of(error), f"The scope {_DISCOVERY} was not requested.")
    if error is not None:
        return fail(error)
    return ok(f"it lists {_some(list(listed)) or 'nothing'}")


def data(look: Look) -> Seen:
    page, error = look.page
    start, end = look.hour()
    hour = f"from {to_minute(start)} to {to_minute(end)} UTC"
    if error is not None:
        return fail(error)
    if not len(page):
        do = "Nothing was measured then, or this subject may read nothing."
        return warn(f"a page without points {hour}", do)
    return ok(f"{counted(page.report.points, 'point')} of {page.report.series:,} series {hour}")


def shape(look: Look) -> Seen:
    report = look.page.value.report
    found = {
        "array": report.arrays,
        "timestamps": report.timestamp_forms,
        "unknown members, which are ignored:": report.unknown_members,
    }
    seen = "; ".join(f"{what} {_some(names)}" for what, names in found.items() if names)
    counts = {name.replace("_", " "): getattr(report, name) for name in _UNUSUAL}
    unusual = ", ".join(f"{what}: {count:,}" for what, count in counts.items() if count)
    if unusual:
        return warn("; ".join(filter(None, [seen, unusual])), "Ask the operator of the service.")
    return ok(seen or "nothing to detect")


def _some(names: Sequence[str]) -> str:
    first = [escaped(name[:60]) for name in names[:_MOST]]
    return ", ".join([*first, *(["…"] if len(names) > _MOST else [])])
