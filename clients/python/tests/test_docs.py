"""Every example of a docstring and of docs/python.md runs against the server; docstrings show what comes out."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

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


def test_the_blocks_of_the_guide_run(
    url: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its files go with the test.
    monkeypatch.chdir(tmp_path)
    guide = (Path(__file__).parents[3] / "docs" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", guide, flags=re.DOTALL)
    assert len(blocks) >= 8
    names: dict[str, object] = {"__name__": "guide"}
    for block in blocks:
        if "# not run" not in block:
            exec(compile(block.replace("http://127.0.0.1:7117", url), "docs/python.md", "exec"), names)
    assert "filter" in capsys.readouterr().out
