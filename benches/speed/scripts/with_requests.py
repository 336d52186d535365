"""The same with requests and PyJWT."""

import os
import time
import uuid
from datetime import datetime

import jwt
import requests

base_url = os.environ["SPEED_SERVER"]
with open(os.environ["SPEED_TARGET"] + "/bench-pages/key.pem", "rb") as file:
    key = file.read()
session = requests.Session()
audience = base_url + "/api/customer/oauth/token"
now = int(time.time())
claims = {"iss": "bench", "sub": "bench", "aud": audience, "jti": str(uuid.uuid4())}
times = {"iat": now, "nbf": now, "exp": now + 120}
form = {
    "grant_type": "client_credentials",
    "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    "client_assertion": jwt.encode(claims | times, key, "RS256", {"kid": "bench"}),
    "scope": "customer.discovery.read customer.data.read",
}
token = session.post(audience, data=form)
token.raise_for_status()
query = {
    "siteId": "page",
    "from": "2026-09-01T00:00:00Z",
    "to": "2026-09-01T08:20:00Z",
    "aggregationIntervalSeconds": "60",
    "pageSize": "10000",
}
bearer = {"Authorization": "Bearer " + token.json()["access_token"]}
records = []
while True:
    page = session.get(base_url + "/api/customer/v1/data", params=query, headers=bearer)
    page.raise_for_status()
    body = page.json()
    for one in body["series"]:
        records += [
            {
                "site_id": one["siteId"],
                "line_id": one["lineId"],
                "machine_id": one["machineId"],
                "device_id": one["deviceId"],
                "tag_guid": one["tagGuid"],
                "timestamp": datetime.fromisoformat(point["timestamp"]),
                "value": point["value"],
                "minimum": point["minimum"],
                "maximum": point["maximum"],
                "sample_count": point["sampleCount"],
            }
            for point in one["points"]
        ]
    if body["nextCursor"] is None:
        break
    query["cursor"] = body["nextCursor"]
print(len(records), sum(record["value"] or 0.0 for record in records))
