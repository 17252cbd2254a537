from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from isulad_py.api.runtime import v1 as cri
from isulad_py.wire import encodings as encodings_module
from isulad_py.wire import protobuf
from isulad_py.wire.encodings import Encodings, gather_fresh, join_fresh


@dataclass(frozen=True)
class Thing:
    id: str
    name: str = ""


class Counting:
    """A translation that counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, thing: Thing) -> cri.PodSandbox:
        self.calls += 1
        return cri.PodSandbox(id=thing.id, runtime_handler=thing.name)


def names(answer: bytes) -> list[str]:
    return [item.runtime_handler for item in cri.ListPodSandboxResponse().parse(answer).items]


async def test_an_unchanged_record_is_encoded_once() -> None:
    translate = Counting()
    encodings: Encodings[Thing] = Encodings(translate)
    things = [Thing("1", "a"), Thing("2", "b")]
    assert [names(await encodings.join(things, complete=True)) for _ in range(3)] == [["a", "b"]] * 3
    assert translate.calls == 2


async def test_a_changed_record_is_encoded_anew() -> None:
    translate = Counting()
    encodings: Encodings[Thing] = Encodings(translate)
    await encodings.join([Thing("1", "a"), Thing("2", "b")], complete=True)
    changed = [Thing("1", "a"), Thing("2", "c")]  # equal is not identical: a new record is a new truth
    assert names(await encodings.join(changed, complete=True)) == ["a", "c"]
    assert translate.calls == 4


async def test_what_is_gone_is_forgotten() -> None:
    encodings: Encodings[Thing] = Encodings(Counting())
    things = [Thing(str(number)) for number in range(10)]
    await encodings.join(things, complete=True)
    await encodings.join(things[:3], complete=False)
    assert len(encodings) == 10
    await encodings.join(things[:3], complete=True)
    assert len(encodings) == 3
    await encodings.join([], complete=True)
    assert len(encodings) == 0


async def test_filtered_lists_alone_do_not_grow_it_for_ever() -> None:
    encodings: Encodings[Thing] = Encodings(Counting(), limit=5)
    for number in range(100):
        await encodings.join([Thing(str(number))], complete=False)
    assert len(encodings) <= 5


async def test_lists_asked_for_at_once_are_each_right() -> None:
    encodings: Encodings[Thing] = Encodings(Counting())
    former = [Thing(str(number), "old") for number in range(100)]
    latter = [Thing(str(number), "new") for number in range(50, 150)]
    answers = await asyncio.gather(
        encodings.join(former, complete=True), encodings.join(latter, complete=True), encodings.join([], complete=True)
    )
    assert [set(names(answer)) for answer in answers] == [{"old"}, {"new"}, set()]
    assert [len(names(answer)) for answer in answers] == [100, 100, 0]


async def test_a_streamed_list_is_the_same_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings_module, "CHUNK_BYTES", 100)
    encodings: Encodings[Thing] = Encodings(Counting())
    things = [Thing(str(number), "name" * 3) for number in range(40)]
    chunks = [chunk async for chunk in encodings.chunks(things, complete=True)]
    assert 5 < len(chunks) < 40
    assert all(100 <= len(chunk) < 130 for chunk in chunks[:-1])
    assert b"".join(chunks) == await encodings.join(things, complete=True)
    assert [chunk async for chunk in encodings.chunks([], complete=True)] == []


async def test_fresh_elements_are_joined_in_order() -> None:
    elements = [protobuf.message(1, protobuf.text(7, str(number))) for number in range(100)]
    assert names(await join_fresh(iter(elements))) == [str(number) for number in range(100)]
    assert await gather_fresh(iter(elements)) == elements
