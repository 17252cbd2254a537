"""Pure translation between CRI messages and the model. No asyncio, no I/O. Tests: tests/unit/wire/translate."""
