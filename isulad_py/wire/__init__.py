"""Kubelet-facing gRPC: decode, one service call, encode.

May import engine and below, and the generated messages. Tests: tests/wire, tests/unit/wire.
"""
