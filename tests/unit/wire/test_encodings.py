from __future__ import annotations

from dataclasses import dataclass

from isulad_py.api.runtime import v1 as cri
from isulad_py.wire.encodings import Encodings


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


def test_an_unchanged_record_is_encoded_once() -> None:
    translate = Counting()
    encodings: Encodings[Thing] = Encodings(translate)
    things = [Thing("1", "a"), Thing("2", "b")]
    assert [names(encodings.join(things, complete=True)) for _ in range(3)] == [["a", "b"]] * 3
    assert translate.calls == 2


def test_a_changed_record_is_encoded_anew() -> None:
    translate = Counting()
    encodings: Encodings[Thing] = Encodings(translate)
    encodings.join([Thing("1", "a"), Thing("2", "b")], complete=True)
    changed = [Thing("1", "a"), Thing("2", "c")]  # equal is not identical: a new record is a new truth
    assert names(encodings.join(changed, complete=True)) == ["a", "c"]
    assert translate.calls == 4


def test_what_is_gone_is_forgotten() -> None:
    encodings: Encodings[Thing] = Encodings(Counting())
    things = [Thing(str(number)) for number in range(10)]
    encodings.join(things, complete=True)
    encodings.join(things[:3], complete=False)
    assert len(encodings) == 10
    encodings.join(things[:3], complete=True)
    assert len(encodings) == 3
    encodings.join([], complete=True)
    assert len(encodings) == 0


def test_filtered_lists_alone_do_not_grow_it_for_ever() -> None:
    encodings: Encodings[Thing] = Encodings(Counting(), limit=5)
    for number in range(100):
        encodings.join([Thing(str(number))], complete=False)
    assert len(encodings) <= 5
