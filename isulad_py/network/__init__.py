"""Adapter to CNI plugins: the pods' network. May import ports, host and below.

Pure: conflist, result, request, arguments. One call: invoke. The configuration and its readiness: directory, watch.
The chain: adapter. Tests: tests/unit/network, tests/contract, tests/faults.
"""
