"""Syncs into targets, killed at random moments.

After each kill the target has the points, values and flags of a `Store`. `make campaigns
ONLY=target-kills` runs twenty seeds of 200 kills for each target.
"""

import pytest
from kit.examples import examples
from target_kills.campaign import Campaign
from target_kills.places import DRIVERS, open_server

pytestmark = [pytest.mark.campaign, pytest.mark.once]


@pytest.mark.parametrize(("kind", "driver"), DRIVERS.items())
def test_a_target_that_is_killed_at_random_moments_has_what_a_store_has(kind, driver, tmp_path):
    pytest.importorskip(driver)
    seeds, kills = examples(2, 20), examples(10, 200)
    with open_server(kind) as server:
        campaign = Campaign(kind, tmp_path, server, restart=kind == "postgres")
        for seed in range(seeds):
            campaign.seed(seed, kills)
            print(f"seed {seed}: {dict(campaign.done)}")
    assert campaign.broken == []
    assert campaign.done["kill"] + campaign.done["restart"] == seeds * kills
    assert bool(campaign.done["restart"]) is (kind == "postgres")
    assert campaign.done["revised"] > 0
    assert campaign.done["withdrawn"] > 0
