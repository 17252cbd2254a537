"""How a streaming connection ends before its time."""

from __future__ import annotations

from collections.abc import Iterator

from isulad_py.model.errors import EngineError, InvalidInput, Unavailable


class ProtocolError(InvalidInput):
    """The client sent what its protocol does not allow: its connection ends, with this as the logged reason."""


class ClientGone(Unavailable):
    """The client's connection has ended."""


def reason_of(errors: BaseExceptionGroup) -> BaseException:
    """Of several that came together, the one that the others may follow from: a defect, the client, the engine."""
    leaves = list(_leaves(errors))
    for kind in (ProtocolError, ClientGone, EngineError):
        found = next((leaf for leaf in leaves if isinstance(leaf, kind)), None)
        if found is not None and all(isinstance(leaf, EngineError) for leaf in leaves):
            return found
    return errors


def _leaves(errors: BaseExceptionGroup) -> Iterator[BaseException]:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
