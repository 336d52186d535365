"""A sync that is killed, and disks that fail: what is in the store afterwards."""
