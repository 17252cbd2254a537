"""isulad-py: a Kubernetes container engine as one asyncio daemon. Version only; imports nothing."""

__version__ = "0.1.0"
