"""Adapter to OCI runtimes, the per-container monitor, cgroups and the pod's environment.

May import ports, spec, host and below. Tests: tests/unit/runtime, tests/contract.
"""
