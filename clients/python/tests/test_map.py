"""The map of a notebook: what the kernel answers to a view, and that a browser draws it."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import meridian
import pytest
from meridian import _map

HERE = Path(_map.__file__).parent
WEB = Path(__file__).parents[3] / "web/src"
# What a notebook is to the widget: a model whose answer was asked for beforehand. It says how the map looks, and does again in another scheme.
PAGE = """<meta charset="utf-8"><body style="margin:0;width:900px"><div id="el"></div><pre id="said"></pre><script type="module">
const state = %s, on = {}, [prefersDark, ...themes] = %s, looks = [];
window.matchMedia = () => ({ matches: prefersDark, addEventListener() {}, removeEventListener() {} });
const look = () => looks.push({
  text: el.innerText,
  marks: [...el.querySelectorAll('i')].map((mark) => getComputedStyle(mark).backgroundColor),
  pixel: `rgb(${[...el.querySelector('canvas').getContext('2d').getImageData(100, 210, 1, 1).data].slice(0, 3).join(', ')})`,
});
const el = document.getElementById('el');
const model = {
  get: (name) => state[name],
  set: (name, value) => { state[name] = value; },
  save_changes: async () => {
    state.shown = { ...state.answer, seq: state.view.seq };
    on['change:shown']();
    look();
    for (const theme of themes) {
      document.body.dataset.jpThemeLight = theme;
      await null;
      look();
    }
    document.getElementById('said').textContent = JSON.stringify(looks);
  },
  on: (name, act) => { on[name] = act; },
  off: () => {},
};
%s
render({ model, el });
</script>"""
# Around the middle of the world: land of twenty degrees, and a grid on the half of it that is framed first.
LAND = [[-50, -50, 50, -50, 50, 50, -50, 50]]
MIDDLE = [-5.0, -5.0, 5.0, 5.0]
GRID = {"kind": "grid", "count": 500_500, "bbox": MIDDLE, "width": 40, "height": 25, "counts": list(range(1, 1001))}


def looks(tmp_path: Path, answer: Any, *themes: str, dark: bool = False, **state: Any) -> list[Any]:
    """How a browser shows an answer: first as it prefers, then in each theme of JupyterLab."""
    given = {"title": "ships", "frame": MIDDLE, "land": LAND, "total": None, "limited": False, "view": {}, "shown": {}, "answer": answer, **state}
    script = (HERE / "map.js").read_text(encoding="utf-8").replace("export default", "")
    page = tmp_path / "map.html"
    page.write_text(PAGE % (json.dumps(given), json.dumps([dark, *themes]), script), encoding="utf-8")
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=900,430", "--virtual-time-budget=3000", "--dump-dom"]
    dom = subprocess.run([*browser, page.as_uri()], check=True, capture_output=True, encoding="utf-8", timeout=120).stdout
    said = re.search(r'<pre id="said">(.+?)</pre>', dom, re.DOTALL)
    assert said, "the map did not ask"
    found: list[Any] = json.loads(html.unescape(said[1]))
    return found


def palette(source: str, name: str) -> dict[str, str]:
    """The colours of a palette as its source has them."""
    block = re.search(rf"const {name}\b.*?= {{\n(.*?)\n}};", source, re.DOTALL)
    assert block
    return dict(line.strip().rstrip(",").split(": ", 1) for line in block[1].splitlines())


def rgb(color: str) -> str:
    return f"rgb({', '.join(str(int(color[at : at + 2], 16)) for at in (1, 3, 5))})"


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


def test_events_that_a_map_leaves_out_are_known(db: meridian.Database) -> None:
    quakes, world = db["earthquakes"], [-180.0, -90.0, 180.0, 90.0]
    assert _map.total(quakes.query()) == 156_288
    # What is asked of single events does not change how many match.
    assert _map.answer(quakes.query(properties=["mag"]), world, 900, 420)["count"] == 156_288
    cut = quakes.query(sortby="-mag", limit=3_000)
    assert (_map.total(cut), _map.answer(cut, world, 900, 420)["count"]) == (3_000, 2_000)
    assert _map.total(db["ships"].query(nearest=(-74, 40.6, 5))) == 5
    assert _map.total(db["ships"].query(filter="no > 1")) is None


def test_the_widget_answers_when_it_is_moved(db: meridian.Database) -> None:
    shown = db["storms"].show(filter="category_max = 5")
    shown.view = {"seq": 3, "bbox": [-120.0, 0.0, 0.0, 60.0], "width": 900, "height": 420}
    assert shown.shown["seq"] == 3 and shown.shown["count"] == len(shown.shown["features"]) > 10
    assert {f["geometry"]["type"] for f in shown.shown["features"]} <= {"LineString", "MultiLineString"}
    assert shown.total == db["storms"].query(filter="category_max = 5").count() and not shown.limited
    assert db["storms"].show(limit=3).limited


@pytest.mark.parametrize("question", [{}, {"bbox": (-74.1, 40.6, -74.0, 40.7)}])
def test_a_browser_draws_it(server: meridian.Database, tmp_path: Path, question: Any) -> None:
    query = server["ships"].query(**question)
    frame = _map.framed(query)
    found = _map.answer(query, frame, 900, 420)
    land = json.loads((HERE / "land.json").read_text())
    (look,) = looks(tmp_path, found, frame=frame, land=land, total=_map.total(query))
    assert f"ships: {found['count']:,} events in view" in look["text"]
    assert look["marks"]


def test_the_legend_has_quantiles_of_what_is_in_view(tmp_path: Path) -> None:
    (look,) = looks(tmp_path, GRID, total=500_512)
    ranges = ["1–399", "400–699", "700–899", "900–999", "1,000"]
    left = "ships: 500,500 events in view; 12 left out: outside of the view, or without a place"
    assert look["text"].split("\n") == ["Events in a cell", *ranges, left]
    alike = {**GRID, "count": 3_012, "width": 3, "height": 1, "counts": [1_004, 1_004, 1_004]}
    (look,) = looks(tmp_path, alike, total=3_012)
    assert look["text"].split("\n") == ["Events in a cell", "1,004", "ships: 3,012 events in view; none left out"]


def test_the_legend_names_points_and_lines(tmp_path: Path) -> None:
    point = {"geometry": {"type": "Point", "coordinates": [0, 0]}, "label": ""}
    line = {"geometry": {"type": "LineString", "coordinates": [[1, 1], [2, 2]]}, "label": ""}
    (look,) = looks(tmp_path, {"kind": "features", "count": 2, "features": [point, line]}, total=3, limited=True)
    left = "ships: 2 events drawn; 1 left out: more than a map draws, or without a place"
    assert look["text"].split("\n") == ["an event", "the track or outline of an event", left]
    (look,) = looks(tmp_path, {"kind": "features", "count": 1, "features": [point]})
    assert look["text"].split("\n") == ["an event", "ships: 1 events in view"]


@pytest.mark.parametrize("dark", [False, True])
def test_the_scheme_is_that_of_the_notebook_else_of_the_browser(tmp_path: Path, dark: bool) -> None:
    said = looks(tmp_path, GRID, "false", "true", dark=dark)
    script = (HERE / "map.js").read_text(encoding="utf-8")
    for look, scheme in zip(said, ["DARK" if dark else "LIGHT", "DARK", "LIGHT"], strict=True):
        colors = palette(script, scheme)
        assert look["pixel"] == rgb(colors["land"].strip("'"))
        assert look["marks"] == [rgb(color) for color in re.findall("#[0-9a-f]{6}", colors["counts"])]


def test_colours_and_quantiles_are_those_of_the_map_page() -> None:
    script, page = (HERE / "map.js").read_text(encoding="utf-8"), (WEB / "palette.ts").read_text(encoding="utf-8")
    # First of the light scheme, then of the dark one.
    theme = re.findall(r"--(raised|text): (#[0-9a-f]{6});", (WEB / "theme.css").read_text(encoding="utf-8"))
    for scheme, surface in (("LIGHT", theme[:2]), ("DARK", theme[2:])):
        colors = palette(page, scheme) | {name: f"'{color}'" for name, color in surface}
        mine = palette(script, scheme)
        assert mine == {name: colors[name] for name in mine}
    shares = re.search(r"const SHARES = (\[.*\]);", script)
    assert shares and f"const stops = {shares[1]}" in (WEB / "surface/scale.ts").read_text(encoding="utf-8")


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
