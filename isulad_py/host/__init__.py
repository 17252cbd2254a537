"""The only places that start processes, mount, speak netlink, enter namespaces or sleep.

Imports model only. Tests: tests/unit/host (those that need root: tests/integration/host).
"""
