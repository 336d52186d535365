"""Stress test of Ctrl-C, cancel, fork, exit and close, each in a new interpreter."""
