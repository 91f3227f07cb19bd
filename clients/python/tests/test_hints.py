"""The question in Python that a collection's page shows runs as it is printed, and counts every event."""

from __future__ import annotations

import html
import re
import urllib.request
import uuid
from typing import Any

import meridian
import pandas as pd

DATE = {"type": "string", "format": "date-time"}
SPAN = {end: {**DATE, "x-ogc-role": f"primary-interval-{end}"} for end in ("start", "end")}
# A schema and its events, of each kind that the shipped data does not have.
KINDS: list[tuple[Any, list[dict[str, Any]]]] = [
    ("seen:Date,*place:Point:srid=4326", []),
    ("seen:Date,*place:Point:srid=4326", [{"seen": "9999-12-31T00:00:00Z", "lon": 4.5, "lat": 52.0}]),
    ("seen:Date", [{"seen": "2026-01-31T12:00:00Z"}, {"seen": "2026-01-31T13:00:00Z"}]),
    ("*place:Point:srid=4326", [{"lon": 4.5, "lat": 52.0}]),
    ("n:Integer", [{"n": 1}, {"n": 2}]),
    ({"properties": SPAN}, [{"start": "2026-01-31T12:00:00Z", "end": "2026-02-01T12:00:00Z"}]),
]


def hint(url: str, name: str) -> str:
    with urllib.request.urlopen(f"{url}/collections/{name}?f=html") as answer:
        page = answer.read().decode()
    found = re.search(r'<section id="ask-python">.*?<pre[^>]*>(.*?)</pre>', page, re.DOTALL)
    assert found, page
    return html.unescape(found[1])


def test_the_hint_of_every_kind_of_collection_counts_its_events(url: str, server: meridian.Database) -> None:
    made = [f"t{uuid.uuid4().hex[:12]}" for _ in KINDS]
    asked = set()
    try:
        for name, (schema, events) in zip(made, KINDS):
            collection = server.create(name, schema)
            if events:
                collection.append(events)
        for name in server:
            said: list[Any] = []
            exec(compile(hint(url, name), name, "exec"), {"print": said.append})
            (answer,) = said
            # What `print` shows of it must exist as well.
            assert str(answer)
            counted = answer["count"].sum() if isinstance(answer, pd.DataFrame) else answer
            assert counted == len(server[name]), name
            asked.add(type(answer))
    finally:
        for name in made:
            server.drop(name)
    assert asked == {pd.DataFrame, int}
