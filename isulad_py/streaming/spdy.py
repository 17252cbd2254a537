"""The server's side of a SPDY/3.1 connection, without I/O: bytes in, events out, bytes to send.

Pure. Source: the SPDY 3.1 draft. Two kinds of clients are served:

- Those that do flow control (section 2.6.8): nothing is sent past their windows, they are given new windows as their
  data is consumed, and one that overruns ours has its stream reset.
- Those that do none, which is the library behind kubectl, crictl, critest and the kubelet: it sends no WINDOW_UPDATE
  and ignores ours, so that honouring its windows would stop every stream after 64 KiB. There TCP alone holds back
  the faster side.

Which kind a client is shows by what it does: a window update or a setting of the window is flow control; data past the
window is none. One that has done neither when a window is used up is asked with a PING: an answer that comes without
any window update before it (frames are in order) says that there will be none.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from isulad_py.streaming import spdy_frames as frames
from isulad_py.streaming.failures import ProtocolError
from isulad_py.streaming.spdy_frames import GoAwayStatus, ResetStatus
from isulad_py.streaming.spdy_headers import HeaderCompressor, HeaderInflater

INITIAL_WINDOW_BYTES: Final = 64 * 1024
"""Of each stream and of the connection, in both directions, before anything else is said."""
WINDOW_BYTES: Final = 1024 * 1024
"""What clients may send, of each stream and of the connection, from our greeting on."""
LARGEST_WINDOW: Final = 0x7FFFFFFF
MOST_STREAMS: Final = 2048
"""Open at once on one connection: two for each forwarded connection."""
_UNBOUNDED: Final = 1 << 30
_PROBE: Final = 2
_KNOCK: Final = 4
"""Our PINGs have even numbers."""


class Opened(Struct, frozen=True):
    """The client opened a stream; it waits for `reply` or `reset`."""

    stream_id: int
    headers: dict[str, str]
    fin: bool


class Received(Struct, frozen=True, gc=False):
    """Bytes of a stream; each must be given back with `consumed`."""

    stream_id: int
    data: bytes
    fin: bool


class Reset(Struct, frozen=True, gc=False):
    """The stream is gone, in both directions: by the client, or because of what it sent."""

    stream_id: int


class WindowsMoved(Struct, frozen=True, gc=False):
    """`sendable` has to be asked again."""


class Farewell(Struct, frozen=True, gc=False):
    """The client opens no more streams."""


Event: TypeAlias = Opened | Received | Reset | WindowsMoved | Farewell


class FlowControl(enum.Enum):
    """Whether the client does any."""

    UNKNOWN = "unknown"
    YES = "yes"
    NO = "no"


class _Stream:
    __slots__ = ("credit", "ended_by_client", "ended_by_us", "owed", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        """What we may send."""
        self.credit = WINDOW_BYTES
        """What the client may send. One that has not seen our greeting yet believes in less: no harm."""
        self.owed = 0
        """Consumed and not yet credited."""
        self.ended_by_client = False
        self.ended_by_us = False


class SpdyServer:
    """After a ProtocolError only `take_outgoing` makes sense: it has the farewell."""

    def __init__(self) -> None:
        self._reader = frames.FrameReader()
        self._inflater = HeaderInflater()
        self._compressor = HeaderCompressor()
        self._streams: dict[int, _Stream] = {}
        self._last_id = 0
        self._initial_window = INITIAL_WINDOW_BYTES
        self._connection = _Stream(INITIAL_WINDOW_BYTES)
        self._outgoing = [
            frames.settings((frames.INITIAL_WINDOW_SIZE, WINDOW_BYTES), (frames.MAX_CONCURRENT_STREAMS, MOST_STREAMS)),
            frames.window_update(0, WINDOW_BYTES - INITIAL_WINDOW_BYTES),
        ]
        self._asked = False
        self._left = False
        self.flow_control = FlowControl.UNKNOWN

    # Input

    def receive(self, data: bytes) -> Iterator[Event]:
        """To be run to its end. Raises ProtocolError for what ends the connection."""
        try:
            for frame in self._reader.feed(data):
                yield from self._events(frame)
        except ProtocolError:
            self._outgoing.append(frames.goaway(self._last_id, GoAwayStatus.PROTOCOL_ERROR))
            raise

    def _events(self, frame: frames.Frame) -> Iterator[Event]:
        match frame:
            case frames.DataPart():
                yield from self._on_data(frame)
            case frames.WindowUpdate():
                yield from self._on_window_update(frame)
            case frames.SynStream():
                yield from self._on_syn_stream(frame)
            case frames.RstStream():
                if self._streams.pop(frame.stream_id, None) is not None:
                    yield Reset(frame.stream_id)
            case frames.Ping():
                yield from self._on_ping(frame)
            case frames.Settings():
                yield from self._on_settings(frame)
            case frames.Headers():
                yield from self._on_headers(frame)
            case _:
                yield from self._on_rest(frame)

    def _on_rest(self, frame: frames.Frame) -> Iterator[Event]:
        if isinstance(frame, frames.SynReply):
            raise ProtocolError(f"spdy: SYN_REPLY for stream {frame.stream_id}, which we did not open")
        yield Farewell()

    def _on_syn_stream(self, frame: frames.SynStream) -> Iterator[Event]:
        headers = self._inflater.headers(frame.block)  # always: the compression has a state
        number = frame.stream_id
        if number % 2 == 0 or number <= self._last_id:
            raise ProtocolError(f"spdy: stream {number} after stream {self._last_id}")
        self._last_id = number
        if self._left or len(self._streams) >= MOST_STREAMS:
            self._outgoing.append(frames.rst_stream(number, ResetStatus.REFUSED_STREAM))
            return
        stream = _Stream(self._initial_window)
        stream.ended_by_client = frame.fin
        stream.ended_by_us = frame.unidirectional
        self._streams[number] = stream
        yield Opened(number, headers, frame.fin)

    def _on_data(self, part: frames.DataPart) -> Iterator[Event]:
        size = len(part.data)
        stream = self._streams.get(part.stream_id)
        if stream is None or stream.ended_by_client:
            # What was on its way when the stream ended still counts for the connection.
            self._connection.credit -= size
            self._credit(0, self._connection, size)
            if stream is not None:
                yield from self._cut(part.stream_id, ResetStatus.STREAM_ALREADY_CLOSED)
            elif part.stream_id > self._last_id:
                self._outgoing.append(frames.rst_stream(part.stream_id, ResetStatus.INVALID_STREAM))
            return
        stream.credit -= size
        self._connection.credit -= size
        if stream.credit < 0 or self._connection.credit < 0:
            if self.flow_control is FlowControl.YES:
                self._credit(0, self._connection, size)
                yield from self._cut(part.stream_id, ResetStatus.FLOW_CONTROL_ERROR)
                return
            yield from self._conclude(FlowControl.NO)
        stream.ended_by_client = part.fin
        yield Received(part.stream_id, part.data, part.fin)
        if part.fin:
            self._forget_if_over(part.stream_id, stream)

    def _on_window_update(self, frame: frames.WindowUpdate) -> Iterator[Event]:
        target = self._connection if not frame.stream_id else self._streams.get(frame.stream_id)
        yield from self._conclude(FlowControl.YES)
        if target is None:
            return  # for a stream that has ended meanwhile
        target.window += frame.delta
        if target.window > LARGEST_WINDOW or not frame.delta:
            if target is self._connection:
                raise ProtocolError("spdy: window of the connection out of range")
            yield from self._cut(frame.stream_id, ResetStatus.FLOW_CONTROL_ERROR)
            return
        yield WindowsMoved()

    def _on_settings(self, frame: frames.Settings) -> Iterator[Event]:
        for number, value in frame.values:
            if number != frames.INITIAL_WINDOW_SIZE:
                continue
            if value > LARGEST_WINDOW:
                raise ProtocolError(f"spdy: initial window of {value} bytes")
            for stream in self._streams.values():
                stream.window += value - self._initial_window
            self._initial_window = value
            yield from self._conclude(FlowControl.YES)
            yield WindowsMoved()

    def _on_ping(self, frame: frames.Ping) -> Iterator[Event]:
        if frame.ping_id % 2:
            self._outgoing.append(frames.ping(frame.ping_id))
        elif frame.ping_id == _PROBE and self._asked and self.flow_control is FlowControl.UNKNOWN:
            yield from self._conclude(FlowControl.NO)

    def _on_headers(self, frame: frames.Headers) -> Iterator[Event]:
        """More headers say nothing to us, but may end the stream."""
        self._inflater.headers(frame.block)
        stream = self._streams.get(frame.stream_id)
        if stream is None or stream.ended_by_client or not frame.fin:
            return
        stream.ended_by_client = True
        yield Received(frame.stream_id, b"", True)
        self._forget_if_over(frame.stream_id, stream)

    def _conclude(self, found: FlowControl) -> Iterator[Event]:
        """The first sign counts, except that whoever updates windows does control."""
        if self.flow_control is found or (self.flow_control is FlowControl.YES and found is FlowControl.NO):
            return
        self.flow_control = found
        yield WindowsMoved()

    def _cut(self, stream_id: int, status: ResetStatus) -> Iterator[Event]:
        self.reset(stream_id, status)
        yield Reset(stream_id)

    # Output

    def take_outgoing(self) -> bytes:
        """Control frames to be sent, before any data that is asked for later."""
        if not self._outgoing:
            return b""
        taken = b"".join(self._outgoing)
        self._outgoing.clear()
        return taken

    def reply(self, stream_id: int) -> None:
        """Accepts a stream."""
        if stream_id in self._streams:
            self._outgoing.append(frames.syn_reply(stream_id, self._compressor.block({})))

    def reset(self, stream_id: int, status: ResetStatus = ResetStatus.CANCEL) -> None:
        """Ends a stream in both directions; refuses one that was not accepted. Idempotent."""
        if self._streams.pop(stream_id, None) is not None:
            self._outgoing.append(frames.rst_stream(stream_id, status))

    def sendable(self, stream_id: int) -> int:
        """How many bytes may be sent now."""
        if self.flow_control is FlowControl.NO:
            return _UNBOUNDED
        stream = self._streams.get(stream_id)
        return 0 if stream is None else max(0, min(stream.window, self._connection.window))

    def is_open(self, stream_id: int) -> bool:
        """Whether anything can be sent on it."""
        stream = self._streams.get(stream_id)
        return stream is not None and not stream.ended_by_us

    def data_head(self, stream_id: int, size: int, *, fin: bool = False) -> bytes:
        """The bytes to be sent before `size` bytes of data, which must be `sendable` and must follow at once. Empty for
        a stream on which nothing can be sent: nothing must follow then."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.ended_by_us:
            return b""
        stream.window -= size
        self._connection.window -= size
        if fin:
            stream.ended_by_us = True
            self._forget_if_over(stream_id, stream)
        return frames.data_head(stream_id, size, fin=fin)

    def consumed(self, stream_id: int, size: int) -> None:
        """Bytes of `Received` have found their way: the client may send as many again."""
        stream = self._streams.get(stream_id)
        if stream is not None and not stream.ended_by_client:
            self._credit(stream_id, stream, size)
        self._credit(0, self._connection, size)

    def ask_flow_control(self) -> bool:
        """Asks once whether window updates are to be expected; True where the answer is open."""
        if self.flow_control is not FlowControl.UNKNOWN:
            return False
        if not self._asked:
            self._asked = True
            self._outgoing.append(frames.ping(_PROBE))
        return True

    def assume_no_flow_control(self) -> None:
        """For a client that does not even answer a PING in time."""
        if self.flow_control is FlowControl.UNKNOWN:
            self.flow_control = FlowControl.NO

    def knock(self) -> None:
        """Sends something that means nothing, for the kernel to find out whether anybody is there."""
        self._outgoing.append(frames.ping(_KNOCK))

    def go_away(self) -> None:
        """No more streams are accepted."""
        if not self._left:
            self._left = True
            self._outgoing.append(frames.goaway(self._last_id, GoAwayStatus.OK))

    def _credit(self, stream_id: int, holder: _Stream, size: int) -> None:
        """In halves of a window: few updates, and never one for a client that shows that it does not care."""
        holder.owed += size
        if holder.owed * 2 < WINDOW_BYTES or self.flow_control is FlowControl.NO:
            return
        self._outgoing.append(frames.window_update(stream_id, holder.owed))
        holder.credit += holder.owed
        holder.owed = 0

    def _forget_if_over(self, stream_id: int, stream: _Stream) -> None:
        if stream.ended_by_client and stream.ended_by_us:
            self._streams.pop(stream_id, None)
