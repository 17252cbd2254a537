"""Protocols that the engine calls and the adapters implement. Imports model only. Tests: tests/contract."""
