"""Domain services, one noun each: they speak the model and call ports, and know no adapter and no message.

Tests: tests/unit/engine, tests/restart.
"""
