"""From an enrolled key to a DataFrame: a week of one-minute data, over real HTTP.

The service is siteline's sandbox, on loopback: the complete interface, strict, with late points and
revisions. For the real service, only the address and the subject change.
"""

import time

import siteline


def show(name: str, text: object) -> None:
    print(f"{name:<11} {text}")


with siteline.Sandbox(seed=7, now="2026-11-09T00:00:00Z") as sandbox:
    began = time.perf_counter()

    # Enrollment: the administrator receives the public key, and returns a subject.
    key = siteline.PrivateKey.generate()
    subject = sandbox.enroll(key.public_jwk)
    show("key", f"RSA, {key.bits} bits; thumbprint, and kid, {key.thumbprint[:16]}...")
    show("subject", subject)

    client = siteline.Client(
        sandbox.base_url,
        credential=siteline.Credential(subject, key),
        daily_allowance=5_000,
        clock=sandbox.clock,  # the sandbox's clock is stopped; the default is the system clock
    )
    show("service", client.base_url)

    resources = client.discover()
    show("discovery", f"{len(resources.raw):,} bytes: {', '.join(resources)}")

    scan = client.scan(
        site="S1",
        line="L2",
        start="2026-11-01T00:00:00Z",
        end="2026-11-08T00:00:00Z",
        interval="1m",
        page_size=10_000,
    )
    query = scan.query  # no data request has been made yet
    span = f"{query.start:%Y-%m-%d} to {query.end:%Y-%m-%d}"
    selected = f"{query.site[0]} {query.line[0]}, {span}"
    show("query", f"{selected}, a point every {query.interval}")
    frame = scan.to_pandas()
    seconds = time.perf_counter() - began

    report = scan.collect().report  # the scan is cached: this makes no request
    allowance = client.allowance
    show("found", f"array {report.arrays[0]!r}, timestamps as {report.timestamp_forms[0]}")
    show("tokens", f"{sandbox.stats.token_requests} exchange, a fresh assertion for each")
    show("pages", report.pages)
    show("points", f"{report.points:,} of {report.series} series")
    show("requests", f"{allowance.used} of {allowance.limit:,} a day, {allowance.left:,} left")
    show("seconds", f"{seconds:.2f}, from the new key to the frame:")
    print()
    shorter = {"tag_guid": "{:.8}...".format}
    print(frame.head().to_string(index=False, float_format="%.2f", formatters=shorter))
