"""The class ``Sandbox``: made when it is first used, and missing in a build without it."""

from __future__ import annotations

from siteline._core import HAS_SANDBOX
from siteline._unpicklable import register_refusal

if not HAS_SANDBOX:
    raise ImportError(
        "This build of siteline has no Sandbox: it was compiled without the Cargo feature "
        "`sandbox`. Tests need a wheel that has it, as released ones do.",
        name="siteline",
    )

from siteline._core import Sandbox

register_refusal(Sandbox, "another process needs its base_url and an enrolled key to make a client")
