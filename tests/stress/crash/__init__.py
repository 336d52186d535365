"""Stress test of the store: syncs that are killed, and disks that fail."""
