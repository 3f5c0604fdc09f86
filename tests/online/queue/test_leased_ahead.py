"""Turns that a process has leased from a spool file and not begun to judge: held, and given back."""

from __future__ import annotations

import asyncio
from pathlib import Path

from online.helpers import turn
from steelyard.online import SpoolSettings
from steelyard.online.queue._sqlite import SQLiteQueue
from steelyard.online.queue._turns import Leased, Selected, Undelivered


def names(leased: list[Leased | Undelivered]) -> list[str]:
    return [one.turn.record.id for one in leased if isinstance(one, Leased)]


async def filled(path: Path, count: int, **settings: float) -> SQLiteQueue:
    queue = SQLiteQueue(SpoolSettings(path=path, **settings))  # type: ignore[arg-type]
    await queue.open()
    await queue.put([Selected(turn(id=f"{number:02}"), 0.5, 1.0) for number in range(count)])
    return queue


def test_a_quarter_more_is_leased_and_handed_out_in_order(tmp_path: Path) -> None:
    async def main() -> None:
        queue = await filled(tmp_path / "turns.db", 20)
        other = SQLiteQueue(SpoolSettings(path=tmp_path / "turns.db"))
        await other.open()
        assert names(await queue.lease(8)) == [f"{number:02}" for number in range(8)]
        assert names(await other.lease(1)) == ["10"]
        assert [names(await queue.lease(1)) for _ in range(3)] == [["08"], ["09"], ["11"]]
        await queue.close()
        await other.close()

    asyncio.run(main())


def test_what_was_not_begun_is_given_back(tmp_path: Path) -> None:
    async def main() -> None:
        queue = await filled(tmp_path / "turns.db", 10)
        held = await queue.lease(8)
        assert len(held) == 8
        await queue.release(held)
        await queue.close()
        other = SQLiteQueue(SpoolSettings(path=tmp_path / "turns.db"))
        await other.open()
        assert len(await other.lease(20)) == 10
        await other.close()

    asyncio.run(main())


def test_what_was_not_begun_is_renewed(tmp_path: Path) -> None:
    async def main() -> None:
        queue = await filled(tmp_path / "turns.db", 10, lease_seconds=1.0)
        held = await queue.lease(8)
        other = SQLiteQueue(SpoolSettings(path=tmp_path / "turns.db", lease_seconds=1.0))
        await other.open()
        for _ in range(8):
            await asyncio.sleep(0.3)  # longer than a lease in all
            await queue.renew(held)
            assert await other.lease(20) == []
        await queue.close()
        await other.close()

    asyncio.run(main())
