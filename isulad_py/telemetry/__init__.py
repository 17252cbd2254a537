"""Structured logs, metrics, and the lag of the event loop. Imports model only. Tests: tests/unit/telemetry."""
