"""A server with the shipped data at MERIDIAN_TEST_URL, and a folder with the same data: scripts/python_test.sh makes both."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import Any

import meridian
import pytest


@pytest.fixture(scope="session")
def url() -> str:
    return os.environ["MERIDIAN_TEST_URL"]


@pytest.fixture(scope="session")
def server(url: str) -> meridian.Database:
    return meridian.connect(url)


@pytest.fixture(scope="session")
def folder() -> str:
    return os.environ["MERIDIAN_TEST_FOLDER"]


@pytest.fixture(scope="session", params=["connect", "open"])
def db(request: pytest.FixtureRequest, server: meridian.Database, folder: str) -> Iterator[meridian.Database]:
    """Both ways to the same data: what a test asks of it holds over the network and in the process."""
    if request.param == "connect":
        yield server
    else:
        with meridian.open(folder, create=False, saved_searches=True) as own:
            yield own


@pytest.fixture
def made(db: meridian.Database) -> Iterator[Any]:
    """Creates collections that go when the test ends."""
    names: list[str] = []

    def make(schema: Any, **settings: Any) -> meridian.Collection:
        names.append(f"t{uuid.uuid4().hex[:12]}")
        return db.create(names[-1], schema, **settings)

    yield make
    for name in names:
        db.drop(name)
