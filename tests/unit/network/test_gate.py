from __future__ import annotations

import asyncio

from isulad_py.network.gate import Gate


async def turns() -> None:
    """Lets everything that can go on go on."""
    for _ in range(20):
        await asyncio.sleep(0)


class Visitor:
    def __init__(self, gate: Gate, *, alone: bool = False) -> None:
        self.inside = False
        self.leave = asyncio.Event()
        self.task = asyncio.ensure_future(self._visit(gate, alone))

    async def _visit(self, gate: Gate, alone: bool) -> None:
        async with gate.exclusive() if alone else gate.shared():
            self.inside = True
            await self.leave.wait()
        self.inside = False

    async def go(self) -> None:
        self.leave.set()
        await self.task
        await turns()


async def test_many_share() -> None:
    gate = Gate()
    visitors = [Visitor(gate) for _ in range(3)]
    await turns()
    assert all(visitor.inside for visitor in visitors)
    for visitor in visitors:
        await visitor.go()


async def test_one_is_alone_and_holds_the_others_up() -> None:
    gate = Gate()
    first, alone = Visitor(gate), Visitor(gate, alone=True)
    await turns()
    assert first.inside
    assert not alone.inside
    newcomer = Visitor(gate)
    await turns()
    assert newcomer.inside  # who waits to be alone keeps nobody out
    await first.go()
    assert not alone.inside
    await newcomer.go()
    assert alone.inside
    late, second = Visitor(gate), Visitor(gate, alone=True)
    await turns()
    assert not late.inside
    assert not second.inside
    await alone.go()
    assert late.inside or second.inside
    assert not (late.inside and second.inside)
    for visitor in (late, second):
        visitor.leave.set()
    await asyncio.gather(late.task, second.task)


async def test_who_gives_up_waiting_leaves_no_trace() -> None:
    gate = Gate()
    first, alone = Visitor(gate), Visitor(gate, alone=True)
    await turns()
    alone.task.cancel()
    await turns()
    assert alone.task.cancelled()
    second = Visitor(gate)
    await turns()
    assert second.inside
    first.task.cancel()
    second.task.cancel()
    await turns()
    last = Visitor(gate, alone=True)
    await turns()
    assert last.inside
    await last.go()
