"""The notebooks run to their end; one always, the others if MERIDIAN_TEST_NOTEBOOKS is `all`."""

from __future__ import annotations

import os
from pathlib import Path

import nbclient
import nbformat
import pytest

BOOKS = Path(__file__).parents[1] / "notebooks"
ALWAYS = ["earthquakes"]
LONG = ["anchored", "ships", "storms"]
WANTED = ALWAYS + (LONG if os.environ.get("MERIDIAN_TEST_NOTEBOOKS") == "all" else [])


def test_every_notebook_is_listed() -> None:
    assert sorted(path.stem for path in BOOKS.glob("*.ipynb")) == sorted(ALWAYS + LONG)


@pytest.mark.parametrize("name", WANTED)
def test_a_notebook_runs_and_has_pictures(name: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERIDIAN_URL", url)
    book = nbformat.read(BOOKS / f"{name}.ipynb", as_version=4)
    # As Jupyter does: beside the notebook, which finds the shipped files from there.
    beside = {"metadata": {"path": str(BOOKS)}}
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3", resources=beside).execute()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) >= 2
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    if folder := os.environ.get("MERIDIAN_TEST_PICTURES"):
        nbformat.write(book, Path(folder) / f"{name}.ipynb")


def test_progress_is_one_line_that_is_drawn_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MERIDIAN_URL", url)
    code = """
import meridian
from meridian import _progress
_progress.AFTER_S = _progress.EVERY_S = 0.0
meridian.connect()["ships"].query(limit=50_000).to_arrow();
"""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    (output,) = book.cells[0].outputs
    assert "read ships: 50,000 of 50,000 events" in output["data"]["text/html"]
