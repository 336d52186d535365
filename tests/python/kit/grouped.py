"""Settings of a client by their names in a profile, as the parameters of the client."""

from dataclasses import fields

from siteline.types import Http

HTTP = {one.name for one in fields(Http)}
ASSERTION = {"audience", "assertion_lifetime", "clock_tolerance", "typ"}


def grouped(options):
    """Returns the same settings with ``http=`` and the settings of assertions."""
    given = {name: value for name, value in options.items() if value is not None}
    http = {name: value for name, value in given.items() if name in HTTP}
    assertion = {name: value for name, value in given.items() if name in ASSERTION}
    rest = {name: value for name, value in given.items() if name not in HTTP | ASSERTION}
    if http:
        rest["http"] = Http(**http)
    if assertion:
        rest["_assertion"] = assertion
    return rest
