"""Adapter to disk: records (SQLite), layers and root file systems (overlay).

May import ports, host and below. Tests: tests/unit/storage, tests/contract.
"""
