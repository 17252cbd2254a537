"""Generated protobuf messages: never edited, made anew from protos/ by `nox -s protos`; imported by wire only.

Imports nothing of ours. Tests: tests/unit/api.
"""
