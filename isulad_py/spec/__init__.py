"""Pure: model, image configuration and host facts in, OCI runtime spec out.

Imports model only. Tests: tests/unit/spec.
"""
