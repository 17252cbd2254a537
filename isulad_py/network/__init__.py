"""Adapter to CNI plugins. May import ports, host and below. Tests: tests/unit/network, tests/contract."""
