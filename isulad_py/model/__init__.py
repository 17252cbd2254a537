"""Pure nouns: pods, containers, images, resources, events, lifecycle, errors.

Imports nothing of ours. Tests: tests/unit/model.
"""
