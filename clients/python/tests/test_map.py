"""The map of a notebook: what the kernel answers to a view, and that a browser draws it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import meridian
import pytest
from meridian import _map

# What a notebook is to the widget: a model whose answer was asked for beforehand.
PAGE = """<body style="margin:0;width:900px"><div id="el"></div><script type="module">
const state = %s, on = {};
const model = {
  get: (name) => state[name],
  set: (name, value) => { state[name] = value; },
  save_changes: () => { state.shown = { ...state.answer, seq: state.view.seq }; on['change:shown'](); },
  on: (name, act) => { on[name] = act; },
  off: () => {},
};
%s
render({ model, el: document.getElementById('el') });
</script>"""


def test_few_events_are_drawn_and_many_are_counted(db: meridian.Database) -> None:
    quakes = db["earthquakes"].query()
    world = _map.answer(quakes, [-180.0, -90.0, 180.0, 90.0], 900, 420)
    assert world["kind"] == "grid" and sum(world["counts"]) == world["count"] == 156_288
    assert (world["width"], world["height"]) == (150, 70)
    japan = _map.answer(quakes, [138.0, 34.0, 142.0, 37.0], 900, 420)
    assert japan["kind"] == "features" and len(japan["features"]) == japan["count"] < 2_000
    assert japan["count"] == quakes.refined(bbox=(138, 34, 142, 37)).count()


def test_the_box_of_a_query_stays(db: meridian.Database) -> None:
    harbour = db["ships"].query(bbox=(-74.1, 40.6, -74.0, 40.7))
    assert _map.framed(harbour) == [-74.1, 40.6, -74.0, 40.7]
    assert _map.answer(harbour, [-180.0, -90.0, 180.0, 90.0], 900, 420)["count"] == harbour.count()
    assert _map.answer(harbour, [0.0, 0.0, 10.0, 10.0], 900, 420)["count"] == 0
    nearest = _map.answer(db["ships"].query(nearest=(-74, 40.6, 5)), [0.0, 0.0, 10.0, 10.0], 900, 420)
    assert nearest["count"] == 5
    wrong = _map.answer(db["ships"].query(filter="no > 1"), [0.0, 0.0, 10.0, 10.0], 900, 420)
    assert wrong["kind"] == "error" and "filter" in wrong["detail"]


def test_the_widget_answers_when_it_is_moved(db: meridian.Database) -> None:
    shown = db["storms"].show(filter="category_max = 5")
    shown.view = {"seq": 3, "bbox": [-120.0, 0.0, 0.0, 60.0], "width": 900, "height": 420}
    assert shown.shown["seq"] == 3 and shown.shown["count"] == len(shown.shown["features"]) > 10
    assert {f["geometry"]["type"] for f in shown.shown["features"]} <= {"LineString", "MultiLineString"}


@pytest.mark.parametrize("question", [{}, {"bbox": (-74.1, 40.6, -74.0, 40.7)}])
def test_a_browser_draws_it(server: meridian.Database, tmp_path: Path, question: Any) -> None:
    query = server["ships"].query(**question)
    here = Path(_map.__file__).parent
    frame = _map.framed(query)
    found = _map.answer(query, frame, 900, 420)
    land = json.loads((here / "land.json").read_text())
    state = {"title": "ships", "frame": frame, "land": land, "view": {}, "shown": {}, "answer": found}
    script = (here / "map.js").read_text().replace("export default", "")
    page = tmp_path / "map.html"
    page.write_text(PAGE % (json.dumps(state), script))
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=900,430", "--virtual-time-budget=3000", "--dump-dom"]
    said = subprocess.run([*browser, page.as_uri()], check=True, capture_output=True, text=True, timeout=120).stdout
    assert f"ships: {found['count']:,} events in view" in said


def test_progress_is_drawn_once_it_takes_long(db: meridian.Database, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from meridian import _progress

    monkeypatch.setattr(_progress, "EVERY_S", 0.0)
    monkeypatch.setattr(_progress, "AFTER_S", 1e9)
    db["storms"].query().to_arrow(progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(_progress, "AFTER_S", 0.0)
    db["storms"].query().to_arrow()
    assert capsys.readouterr().err == ""
    db["storms"].query().to_arrow(progress=True)
    assert "read storms: 692 events" in capsys.readouterr().err
