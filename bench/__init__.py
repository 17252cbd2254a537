"""Measures floors and CRI engines in one run, in turns: `python -m bench --help`.

Owns: how long things take. Tests never time anything; bench never decides what is right, though it checks each answer.
Engines are reached over their sockets only; nothing of isulad_py is imported. Its tests are in tests/unit/bench.
"""
