"""Stress test of the targets: syncs that are killed, and a server that is restarted."""
