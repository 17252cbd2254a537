"""Structured logs and metrics. Imports model only. Tests: tests/unit/telemetry."""
