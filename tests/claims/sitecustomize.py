"""Read by every Python that starts with this folder in PYTHONPATH; see `blind`."""

import os

if claim := os.environ.get("CRI_BLIND"):
    from tests.claims.blind import blind

    blind(claim)
