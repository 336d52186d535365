"""A short form of ``python -m target_kills``: syncs into targets, killed at random moments.

After each the target has, to the point, value and flag, what a `Store` has.
"""

import pytest
from kit.file_target import FLAWS
from target_kills.campaign import Campaign
from target_kills.places import DRIVERS, open_server

pytestmark = [pytest.mark.campaign, pytest.mark.once]


@pytest.mark.parametrize(("kind", "driver"), DRIVERS.items())
def test_a_target_that_is_killed_at_random_moments_has_what_a_store_has(kind, driver, tmp_path):
    pytest.importorskip(driver)
    with open_server(kind) as server:
        campaign = Campaign(kind, tmp_path, server, restart=kind == "postgres")
        for seed in (1, 2):
            campaign.seed(seed, 10)
    assert campaign.broken == []
    assert campaign.done["kill"] + campaign.done["restart"] == 20
    assert bool(campaign.done["restart"]) is (kind == "postgres")
    assert campaign.done["revised"] > 0
    assert campaign.done["withdrawn"] > 0


def test_the_campaign_finds_nothing_in_a_correct_target(tmp_path):
    campaign = Campaign("none", tmp_path)
    campaign.seed(1, 3)
    assert (campaign.done["kill"], campaign.broken) == (3, [])


@pytest.mark.parametrize(("flaw", "finding"), FLAWS.items())
def test_the_campaign_finds_what_is_wrong(flaw, finding, tmp_path):
    campaign = Campaign(flaw, tmp_path)
    campaign.seed(1, 60)
    [broken] = campaign.broken
    assert finding in broken
