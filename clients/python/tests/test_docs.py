"""Every example of a docstring runs against the server and shows what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import meridian
import pytest

MODULES = sorted(module.name for module in pkgutil.walk_packages(meridian.__path__, "meridian."))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name: str, url: str, db: meridian.Database) -> None:
    module = importlib.import_module(name)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testmod(module, extraglobs={"meridian": meridian, "db": db, "url": url}, optionflags=flags)
    assert found.failed == 0


def test_examples_exist() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    count = sum(len(t.examples) for m in MODULES for t in finder.find(importlib.import_module(m)))
    assert count >= 25
