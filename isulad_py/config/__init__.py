"""daemon.json and flags to one frozen configuration, with every finding.

Imports model only. Tests: tests/unit/config.
"""
