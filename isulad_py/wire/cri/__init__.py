"""CRI servicers: RuntimeService and ImageService, served as runtime.v1 and runtime.v1alpha2. Tests: tests/wire."""
