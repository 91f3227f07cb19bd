"""A server with the shipped data, at MERIDIAN_TEST_URL: scripts/python_test.sh starts it."""

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
def db(url: str) -> meridian.Database:
    return meridian.connect(url)


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
