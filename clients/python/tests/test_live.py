"""Streams, searches and saved searches, as iterators and as async iterators."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import meridian
import pytest

SCHEMA = {
    "properties": {
        "place": {"format": "geometry-point", "x-ogc-role": "primary-geometry"},
        "seen": {"type": "string", "format": "date-time", "x-ogc-role": "primary-instant"},
        "ship": {"type": "string", "x-meridian-object": True},
        "note": {"type": "string"},
    },
    "required": ["seen"],
}
Make = Callable[..., meridian.Collection]


def event(n: int, lon: float = 4.0, note: str = "") -> dict[str, Any]:
    return {"seen": f"2026-01-01T00:00:{n:02}Z", "lon": lon, "lat": 52.0, "ship": "s", "note": note or f"note {n}"}


def notes(stream: Any, count: int) -> list[str]:
    return [next(stream)["properties"]["note"] for _ in range(count)]


def test_what_is_written_after_a_stream_is_open_arrives_once_and_in_order(made: Make) -> None:
    boats = made(SCHEMA)
    boats.append([event(0)])
    with boats.stream() as stream:
        for n in range(1, 5):
            boats.append([event(n)])
        assert notes(stream, 4) == ["note 1", "note 2", "note 3", "note 4"]
        position = stream.position
    boats.append([event(5)])
    with boats.stream(after=position) as stream:
        assert notes(stream, 1) == ["note 5"]
    with boats.stream(after="0", filter="note LIKE '%3'") as stream:
        assert notes(stream, 1) == ["note 3"]


def test_a_connection_is_resumed(made: Make) -> None:
    boats = made(SCHEMA)
    with boats.stream() as stream:
        # Also before its first event.
        for n in (1, 3):
            stream._disconnect()
            boats.append([event(n), event(n + 1)])
            assert notes(stream, 2) == [f"note {n}", f"note {n + 1}"]


def test_a_fence(made: Make) -> None:
    boats = made(SCHEMA)
    with boats.stream(bbox=(3, 50, 5, 55), when=["enter", "exit"]) as stream:
        boats.append([event(n, lon=lon) for n, lon in enumerate((1.0, 4.0, 4.5, 9.0))])
        assert [next(stream)["when"] for _ in range(2)] == ["enter", "exit"]


def test_async(made: Make) -> None:
    boats = made(SCHEMA)

    async def follow() -> list[str]:
        async with boats.stream() as stream:
            await asyncio.to_thread(boats.append, [event(1), event(2)])
            found = []
            async for feature in stream:
                found.append(feature["properties"]["note"])
                if len(found) == 2:
                    return found
        return []

    assert asyncio.run(follow()) == ["note 1", "note 2"]


def test_an_async_wait_can_be_cancelled(made: Make) -> None:
    boats = made(SCHEMA)

    async def follow() -> None:
        stream = boats.stream()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(stream), timeout=0.2)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(follow())


def test_a_search(db: meridian.Database, made: Make) -> None:
    boats = made(SCHEMA)
    boats.append([event(n, note="a zeppelin over Utrecht") for n in range(30)])
    with db.search("zeppelin", providers=["meridian"]) as search:
        found = list(search)
    assert len(found) == 30 and {f["provider"] for f in found} == {"meridian"}
    assert search.state == "complete" and search.providers["meridian"]["results"] == 30

    async def ask() -> int:
        async with db.search("zeppelin", providers=["meridian"], limit=7) as search:
            return len([feature async for feature in search])

    assert asyncio.run(ask()) == 7
    with pytest.raises(meridian.Invalid):
        db.search()


def test_a_saved_search(db: meridian.Database, made: Make) -> None:
    boats = made(SCHEMA)
    saved = db.save_search("airships", keywords="zeppelin", providers=["meridian"])
    try:
        assert saved.id in [s.id for s in db.saved_searches()]
        boats.append([event(1), event(2, note="a zeppelin")])
        with saved.results() as results:
            assert next(results)["properties"]["note"] == "a zeppelin"
        boats.append([event(3, note="another zeppelin")])
        assert results.position is not None
        with saved.results(after=int(results.position)) as more:
            assert next(more)["properties"]["note"] == "another zeppelin"
        last = saved.packets()
    finally:
        assert saved.delete() is True
    assert [packet["kind"] for packet in last][-1] == "complete"
    assert saved.delete() is False
