"""Adapter to registries: references, manifests, transfer, safe layers.

May import ports, host and below. Tests: tests/unit/images, tests/contract.
"""
