"""``siteline.Sandbox``: the complete service on loopback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from siteline._core import HAS_SANDBOX

if not HAS_SANDBOX:
    raise ImportError(
        "This build of siteline has no Sandbox: it was compiled without the Cargo feature "
        "`sandbox`. Tests need a wheel that has it, as released ones do.",
        name="siteline",
    )

from siteline import _selection
from siteline._core import SandboxHandle
from siteline._discovered import LEVELS
from siteline._handles import Closing, OfThisProcess
from siteline._keywords import strict
from siteline._times import iso
from siteline.errors import ConfigError
from siteline.testing import Clock, SandboxStats, Variant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Literal

    import pandas as pd

    from siteline import AsyncClient, Client, Credential, MutualTls, Table
    from siteline._core import _ArrowStream, _Duration, _Filter, _Instant

__all__ = ["Sandbox"]

# The certificate of the sandbox's own clients.
_CLIENT = "sandbox-client"


class Sandbox(OfThisProcess, Closing):
    """Runs the complete Customer Data Service on loopback, for tests and demos.

    It is an HTTP service on 127.0.0.1 that shares no code with the client. It verifies each
    assertion and accepts it once, issues tokens for 600 seconds, encrypts its cursors and binds
    them to the query, and counts the daily allowance. Its points arrive late and are revised. It
    serves a generated plant (site ``S1`` with lines ``L1`` and ``L2``, ``S2`` with ``L3``, six
    series per line) or your own data: see :meth:`load`.

    The service runs until :meth:`close`, or as long as the sandbox, one of its clients, or a scan
    of such a client exists: ``siteline.Sandbox().client()`` works.

    Args:
        port: The port. ``None`` and 0 select a free one.
        seed: The seed of the generated plant.
        now: The service's time, in UTC without an offset. Only :attr:`clock` changes it.
        daily_allowance: Data requests of a UTC day. Further ones get status 429.
        token_rate: Token requests of a minute. Further ones get status 429.
        approved: If false, an enrolled key waits for :meth:`approve`.
        late: If false, generated points are final two minutes after their bucket.
        record_wire: Keeps the bytes of each request in :attr:`wire`.
        tls: Uses TLS with a certificate of :attr:`ca`. A version is the only one offered.
        mutual_tls: Platform-managed: a :meth:`certificate` of the client authorises each request
            (``"data"``) or authenticates token requests (``"token"``, RFC 8705).
        variant: Limits and formats that the interface does not specify.

    Raises:
        ConfigError: A setting is wrong, or the port is in use.

    >>> day = {"site": "S1", "start": "2026-11-01T00:00Z", "end": "2026-11-02T00:00Z"}
    >>> with siteline.Sandbox(now="2026-11-20T00:00:00Z", daily_allowance=100) as service:
    ...     scan = service.client().scan(**day, interval="1h")
    ...     len(scan.collect()) == len(service.expected(**day, interval="1h"))
    True
    """

    _instead = "another process needs its base_url and an enrolled key to make a client"

    @strict
    def __init__(
        self,
        *,
        port: int | None = None,
        seed: int = 7,
        now: _Instant | None = None,
        daily_allowance: int | None = None,
        token_rate: int = 30,
        approved: bool = True,
        late: bool = True,
        record_wire: bool = False,
        tls: bool | Literal["1.2", "1.3"] = False,
        mutual_tls: Literal["data", "token"] | None = None,
        variant: Variant = Variant(),  # noqa: B008
    ) -> None:
        """Start a service."""
        options = {**locals(), **vars(variant)}
        for name in ("self", "now", "variant"):
            del options[name]
        self._handle = SandboxHandle(now, options)
        self._clock = Clock._over(self._handle.clock)
        self._mutual_tls = mutual_tls
        self._uses_tls = tls is not False or mutual_tls is not None
        self._credential: Credential | MutualTls | None = None

    @property
    def base_url(self) -> str:
        """The address of the service, ``http://127.0.0.1:PORT``, or ``https://…`` with TLS."""
        return self._handle.base_url

    @property
    def clock(self) -> Clock:
        """The clock of the service and of its clients."""
        return self._clock

    @property
    def ca(self) -> bytes:
        """The certificate of the sandbox's authority (PEM), for ``ca_bundle=`` of a client.

        Raises:
            ConfigError: The sandbox uses no TLS.
        """
        return self._handle.control("ca").encode()

    def client(self, **options: Any) -> Client:
        """Return an enrolled client of this service, on its clock.

        All clients of a sandbox share the subject, the token and the service's allowance. Each
        counts only its own requests, unless ``ledger`` is given.

        Args:
            **options: Keywords of :class:`siteline.Client`, instead of the sandbox's.

        >>> sandbox.client(daily_allowance=50).allowance
        <Allowance 0 of 50 used, 50 left; 0 token requests>
        """
        from siteline import Client

        settings: dict[str, Any] = {
            "credential": self._own_credential(),
            "clock": self._clock,
            "filter_names": {"machine": "machineId", "device": "deviceId", "tag": "tagGuid"},
        }
        if self._uses_tls:
            settings["ca_bundle"] = self.ca
        settings.update(options)
        client = Client(self.base_url, **settings)
        self._handle.serve_while_exists(client._handle)
        return client

    def async_client(self, **options: Any) -> AsyncClient:
        """Return an asynchronous client, as :meth:`client` does.

        Args:
            **options: Keywords of :class:`siteline.AsyncClient`.
        """
        from siteline.aio import AsyncClient

        return AsyncClient._over(self.client(**options)._handle)

    def _own_credential(self) -> Credential | MutualTls:
        # Two threads may both create one, for the same key and subject.
        if self._credential is None:
            if self._mutual_tls is None:
                from siteline import Credential

                key, subject = self._handle.key()
                self._credential = Credential(subject, key.encode())
            else:
                from siteline import MutualTls

                certificate = self._handle.control("own_certificate", _CLIENT).encode()
                client_id = _CLIENT if self._mutual_tls == "token" else None
                self._credential = MutualTls(certificate, client_id=client_id)
        return self._credential

    def env(self) -> dict[str, str]:
        """Return environment variables for code that makes its own client, also in other processes.

        ``SITELINE_BASE_URL``, ``SITELINE_SUBJECT`` and ``SITELINE_PRIVATE_KEY`` (PEM text) are
        settings of the client. ``SITELINE_SANDBOX_CLOCK`` gives each client of this ``base_url``
        the :attr:`clock` of the sandbox: if one process moves it, it moves in all of them.

        With ``tls`` there is also ``SSL_CERT_FILE``. With ``mutual_tls``,
        ``SITELINE_CERTIFICATE_FILE`` replaces subject and key, and ``SITELINE_CLIENT_ID`` is set if
        there are tokens. :meth:`close` removes the files.

        >>> print(*sorted(sandbox.env()))
        SITELINE_BASE_URL SITELINE_PRIVATE_KEY SITELINE_SANDBOX_CLOCK SITELINE_SUBJECT
        """
        handle = self._handle
        variables = {
            "SITELINE_BASE_URL": self.base_url,
            "SITELINE_SANDBOX_CLOCK": handle.control("shared_clock"),
        }
        if self._uses_tls:
            variables["SSL_CERT_FILE"] = handle.shared_file("ca.pem", handle.control("ca"))
        if self._mutual_tls is None:
            key, subject = handle.key()
            return {**variables, "SITELINE_SUBJECT": subject, "SITELINE_PRIVATE_KEY": key}
        certificate = handle.control("own_certificate", _CLIENT)
        file = handle.shared_file("client.pem", certificate)
        variables["SITELINE_CERTIFICATE_FILE"] = file
        if self._mutual_tls == "token":
            variables["SITELINE_CLIENT_ID"] = _CLIENT
        return variables

    def load(
        self,
        frame: pd.DataFrame | _ArrowStream,
        *,
        bucket: _Duration | None = None,
        site: str | None = "S1",
        line: str | None = "L1",
        machine: str | None = "M1",
        device: str | None = "D1",
        tag: str | None = "T1",
    ) -> int:
        """Serve your own data. The first load replaces the generated plant.

        ``timestamp`` (with a zone, or ISO text with one) and ``value`` are required. Missing values
        and NaN are null; infinities are refused. With a column ``minimum``, ``maximum`` or
        ``sample_count`` the rows are aggregated points, which queries for multiples of the bucket
        get re-aggregated, weighted by ``sample_count``. Otherwise they are raw readings, which are
        aggregated to the interval of the query, in any order, repeats included.

        Optional columns are the ids ``site_id``, ``line_id``, ``machine_id``, ``device_id`` and
        ``tag_guid``; for discovery ``name`` and ``unit`` of the tag, ``site_name``, ``line_name``,
        ``machine_name`` and ``device_name``; and ``available_at``, when the service gets the row.

        Args:
            frame: A pandas frame or any Arrow stream (polars, pyarrow, DuckDB, a siteline table).
            bucket: The width of aggregated points (default: the widest grid of all timestamps, at
                most a day), or the interval of queries of readings without one (required).
            site, line, machine, device, tag: The ids, for frames without these columns.

        Returns:
            The number of rows.

        Raises:
            ConfigError: The frame cannot be loaded. Nothing was loaded.

        >>> import pandas as pd
        >>> times = pd.date_range("2026-11-01", periods=3, freq="1min", tz="UTC")
        >>> with siteline.Sandbox(now="2026-11-20T00:00:00Z") as service:
        ...     service.load(pd.DataFrame({"timestamp": times, "value": [1, 2, 6]}), bucket="1m")
        ...     service.expected(interval="3m").to_pandas().value.tolist()
        3
        [3.0]
        """
        return self._handle.load(frame, bucket, _ids(site, line, machine, device, tag))

    def revise(
        self,
        timestamp: _Instant,
        value: float | None,
        *,
        minimum: float | None = None,
        maximum: float | None = None,
        sample_count: int | None = None,
        at: _Instant | None = None,
        site: str | None = "S1",
        line: str | None = "L1",
        machine: str | None = "M1",
        device: str | None = "D1",
        tag: str | None = "T1",
    ) -> None:
        """Change the loaded point of a series at ``timestamp``, or add one.

        A point that is added before the position of a cursor makes the next page repeat a point.

        Args:
            value: The new value. ``None`` makes all four numbers null.
            minimum: The new minimum (default: ``value``).
            maximum: The new maximum (default: ``value``).
            sample_count: The new count (default: 1).
            at: When the service gets the change (default: now).
        """
        bounds = [value if one is None else one for one in (minimum, maximum)]
        if sample_count is None and value is not None:
            sample_count = 1
        ids = _ids(site, line, machine, device, tag)
        self._handle.change(timestamp, (value, bounds[0], bounds[1]), sample_count, at, ids)

    def withdraw(
        self,
        timestamp: _Instant,
        *,
        at: _Instant | None = None,
        site: str | None = "S1",
        line: str | None = "L1",
        machine: str | None = "M1",
        device: str | None = "D1",
        tag: str | None = "T1",
    ) -> None:
        """Remove the loaded point of a series at ``timestamp``.

        The pages after an older cursor then omit a point.

        Args:
            at: When the service removes it (default: now).
        """
        ids = _ids(site, line, machine, device, tag)
        self._handle.change(timestamp, None, None, at, ids)

    def expected(
        self,
        *,
        site: str | None = None,
        line: str | None = None,
        start: _Instant | None = None,
        end: _Instant | None = None,
        interval: _Duration | None = None,
        filters: Mapping[str, _Filter] | None = None,
        at: _Instant | None = None,
    ) -> Table:
        """Return the points that a complete read must return. Sends no request.

        Args:
            site, line: As for :meth:`siteline.Client.scan`.
            start: The start (default: the start of the loaded data, or a day before ``end``).
            end: The end (default: the end of the loaded data, or now).
            interval: The bucket width (default: the service's).
            filters: Accepted ids by query parameter, such as ``{"machineId": ["M1", "M2"]}``.
            at: The time of the read (default: now). ``"final"`` is after the last revision.
        """
        from siteline.table import Table

        selected = (site, line, _selection.filters_of(filters))
        return Table(self._handle.expected(selected, (start, end, at), interval))

    @property
    def stats(self) -> SandboxStats:
        """The counts and logs of the requests so far.

        >>> sandbox.stats.data_requests
        0
        """
        return SandboxStats._restore(self._handle.stats())

    @property
    def wire(self) -> list[str]:
        r"""The bytes of each request as text, in order, with ``record_wire=True``.

        They contain access tokens. Bytes that are not UTF-8 become ``\ufffd``.
        """
        return self._handle.wire()

    @strict
    def fault(
        self,
        *,
        on: Literal["token", "discovery", "data"],
        nth: int | None = None,
        every: int | None = None,
        times: int | None = None,
        skip: int = 0,
        chance: float | None = None,
        seed: int = 0,
        status: int | None = None,
        error: str | None = None,
        body: str | bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
        retry_after: int | str | None = None,
        unavailable: bool = False,
        members: Mapping[str, Any] | None = None,
        drop: Sequence[str] | None = None,
        delay: _Duration | None = None,
        cut: int | None = None,
        stall: int | None = None,
        hang: bool = False,
        reset: bool = False,
        raw: str | bytes | None = None,
        repeat_cursor: bool = False,
        cycle_cursors: int | None = None,
        empty_page: bool = False,
        forget_cursors: bool = False,
        forget_tokens: bool = False,
        grant: Sequence[str] | None = None,
    ) -> None:
        """Cause faults in requests, which are counted from now.

        A request with a fault still uses its assertion and counts its page. Without ``nth``,
        ``every``, ``times``, ``skip`` and ``chance`` only the next request has the fault.

        Args:
            on: The endpoint.
            nth: Only this request.
            every: Each request with a number divisible by this one.
            times: Number of requests in a row.
            skip: Requests before them without a fault.
            chance: The probability of a fault.
            seed: The seed of ``chance``.
            status: The status of a reply that replaces the correct one.
            error: The code of a JSON error body of this reply.
            body: The body of this reply.
            headers: Headers to set in the reply; ``None`` removes one, even ``Date``.
            retry_after: ``Retry-After`` of the replacing reply.
            unavailable: Replies ``temporarily_unavailable``, with ``status`` or the sandbox's own.
            members: Members to change in the JSON of the correct reply.
            drop: Members to remove from the JSON of the correct reply.
            delay: Moves the clock before the request is processed.
            cut: Closes the connection after this number of bytes of the body.
            stall: Sends nothing after this number of bytes of the body.
            hang: Sends no reply.
            reset: Resets the connection.
            raw: Sends these bytes instead of HTTP.
            repeat_cursor: Repeats the cursor, from the second page on.
            cycle_cursors: Sends the cursor that it sent this number of pages before.
            empty_page: Sends a page without points.
            forget_cursors: Makes all cursors invalid.
            forget_tokens: Makes all tokens invalid.
            grant: Grants only these scopes.

        Raises:
            ConfigError: The keywords contradict each other or the endpoint, or have no effect.

        >>> sandbox.fault(on="data", status=503, times=2)
        >>> len(client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T01:00Z",
        ...                 interval="1h").collect()) > 0
        True
        >>> client.allowance.used
        3
        """
        given = {name: one for name, one in locals().items() if one is not None}
        for name in ("self", "on", "delay"):
            given.pop(name, None)
        if retry_after is not None:
            given["retry_after"] = str(retry_after)
        if isinstance(members, dict):
            given["members"] = _json(members)
        for name in ("body", "raw"):
            if isinstance(content := given.get(name), bytearray | memoryview):
                given[name] = bytes(content)
        self._handle.fault(on, delay, given)

    def clear_faults(self) -> None:
        """End all faults."""
        self._handle.control("clear_faults")

    def forget_tokens(self) -> None:
        """Make every access token invalid: the next request with one gets status 401."""
        self._handle.control("forget_tokens")

    def forget_cursors(self) -> None:
        """Make every cursor invalid."""
        self._handle.control("forget_cursors")

    def certificate(
        self,
        name: str = "plant",
        *,
        lifetime: _Duration = "30d",
        begins: _Instant | None = None,
        client_auth: bool = True,
        trusted: bool = True,
        registered: bool = True,
        chain: bool = False,
    ) -> bytes:
        """Issue a client certificate, for :class:`siteline.MutualTls`.

        Its subject is ``CN=<name>,O=siteline sandbox``. Earlier ones of the name stay valid.
        With ``client_auth``, ``trusted`` or ``registered`` false the service refuses it.

        Args:
            name: The name, which is also the ``client_id``.
            lifetime: How long it is valid.
            begins: From when it is valid (default: five minutes ago).
            client_auth: If false, it is not for clients.
            trusted: If false, another authority signs it.
            registered: If false, the service does not know it.
            chain: If true, an intermediate authority signs it. Its certificate is included.

        Returns:
            The certificate with its private key (PEM).
        """
        names = ("client_auth", "trusted", "registered", "chain")
        options = dict(zip(names, (client_auth, trusted, registered, chain), strict=True))
        return self._handle.certificate(name, lifetime, begins, options).encode()

    def unregister(self, name: str) -> None:
        """Make all certificates of a name invalid, and the tokens that are bound to them."""
        self._handle.control("unregister", name)

    def enroll(
        self, public_jwk: Mapping[str, Any] | str, scopes: Iterable[str] | None = None
    ) -> str:
        """Enroll a public RSA key of 2048 bits or more.

        Args:
            public_jwk: A mapping such as ``PrivateKey.public_jwk``, or JSON text.
            scopes: The allowed scopes (default: discovery and data).

        Returns:
            The subject.

        Raises:
            ConfigError: The key is not one.
        """
        given = None if scopes is None else _selection.ids_of(scopes, "scopes")
        return self._handle.enroll(_json_text(public_jwk), given)

    def approve(self, subject: str) -> None:
        """Approve the integration ``subject`` of a sandbox with ``approved=False``."""
        self._handle.control("approve", subject)

    def revoke(self, subject: str) -> None:
        """Revoke the approval of ``subject``: no new tokens, and earlier ones are invalid."""
        self._handle.control("revoke", subject)

    def replace_key(self, subject: str, public_jwk: Mapping[str, Any] | str) -> None:
        """Replace the public key of ``subject`` by ``public_jwk``. Earlier tokens stay valid."""
        self._handle.control("replace_key", subject, _json_text(public_jwk))

    def close(self) -> None:
        """Stop the service. :attr:`stats`, :attr:`wire` and :meth:`expected` still work."""
        self._handle.close()

    def _text(self) -> str:
        state = "closed" if self._handle.is_closed() else self.base_url
        return f"<Sandbox {state}, {iso(self._clock.now())}>"


def _ids(*ids: str | int | None) -> tuple[str | None, ...]:
    named = zip(ids, LEVELS, strict=True)
    return tuple(None if one is None else _selection.value_of(one, name) for one, name in named)


def _json(members: dict[str, Any]) -> Any:
    try:
        return json.loads(json.dumps(members, allow_nan=False))
    except ValueError:
        raise ConfigError("members= holds something that is not JSON.") from None


def _json_text(public_jwk: Mapping[str, Any] | str) -> str:
    return public_jwk if isinstance(public_jwk, str) else json.dumps(dict(public_jwk))
