"""Composition root: flags, bootstrap, start and stop order, systemd.

May import every room; the only one that names concrete adapters. Tests: tests/unit/daemon, tests/integration.
"""
