"""aiohttp endpoints: health and metrics; exec, attach and port-forward.

May import engine and below. Tests: tests/unit/streaming, tests/integration.
"""
