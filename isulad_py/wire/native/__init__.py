"""iSulad's own services for its client, and ours for `isulad image`. Tests: tests/wire."""
