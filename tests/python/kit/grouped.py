"""Settings of a client by their names in a profile, as the parameters of the client."""

from dataclasses import fields

from siteline.types import Http

HTTP = {one.name for one in fields(Http)}


def grouped(options):
    """Returns the same settings with ``http=``."""
    given = {name: value for name, value in options.items() if value is not None}
    http = {name: value for name, value in given.items() if name in HTTP}
    rest = {name: value for name, value in given.items() if name not in HTTP}
    if http:
        rest["http"] = Http(**http)
    return rest
