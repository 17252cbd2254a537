"""How a pull looks: bars that move on a terminal, a line for each news otherwise."""

from __future__ import annotations

import shutil
from typing import Final, Protocol, TextIO

from isulad_py.engine.progress import PullState
from isulad_py.ports.images import PullProgress

LAYER_ID: Final = 12
BAR: Final = 30
_UP, _CLEAR = "\x1b[{}A", "\x1b[J"
_KIB: Final = 1024.0


class Display(Protocol):
    def __call__(self, state: PullState) -> None: ...


def display(err: TextIO) -> Display:
    """On standard error: the image alone goes to standard output."""
    return Bars(err) if err.isatty() else Lines(err)


class Lines:
    """For logs: each step, and each layer when it is there."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._step = ""
        self._whole: set[str] = set()

    def __call__(self, state: PullState) -> None:
        if state.step != self._step:
            self._step = state.step
            print(state.step, file=self._err, flush=True)
        for layer in state.layers:
            if layer.done_bytes >= layer.total_bytes and layer.digest not in self._whole:
                self._whole.add(layer.digest)
                print(f"{_short(layer)}: {_size(layer.total_bytes)}", file=self._err, flush=True)


class Bars:
    """Drawn over each other, and no more of them than the terminal has lines."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._drawn = 0

    def __call__(self, state: PullState) -> None:
        width, height = shutil.get_terminal_size()
        begun = [layer for layer in state.layers if layer.done_bytes < layer.total_bytes]
        shown = begun[: max(height - 3, 1)]
        done = sum(layer.done_bytes for layer in state.layers)
        total = sum(layer.total_bytes for layer in state.layers)
        lines = [f"{state.step} {_size(done)} of {_size(total)}" if total else state.step, *map(_bar, shown)]
        back = _UP.format(self._drawn) if self._drawn else ""
        text = "".join(f"{line[: max(width - 1, 1)]}\n" for line in lines)
        self._err.write(f"{back}{_CLEAR}{text}")
        self._err.flush()
        self._drawn = len(lines)


def _bar(layer: PullProgress) -> str:
    filled = BAR * layer.done_bytes // max(layer.total_bytes, 1)
    return f"{_short(layer)} [{'=' * filled:<{BAR}}] {_size(layer.done_bytes)}/{_size(layer.total_bytes)}"


def _short(layer: PullProgress) -> str:
    return layer.digest.rpartition(":")[2][:LAYER_ID]


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < _KIB:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= _KIB
    return f"{size:.1f} GiB"
