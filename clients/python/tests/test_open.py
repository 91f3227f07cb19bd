"""The engine in this process: opening and closing, other processes, forks, Ctrl-C. What it answers is tested with the server's answers."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import meridian
import pyarrow as pa
import pytest

NOTES = "seen:Date,*place:Point:srid=4326,note:String"


def note(n: int) -> dict[str, object]:
    return {"seen": f"2026-01-01T00:00:{n:02}Z", "lon": 4.0, "lat": 52.0, "note": f"note {n}"}


def run(script: str, folder: Path, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", f"import meridian, sys\nfolder = {str(folder)!r}\n{script}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)  # type: ignore[call-overload,no-any-return]


def test_both_ways_give_the_same_tables(server: meridian.Database, folder: str) -> None:
    with meridian.open(folder, create=False) as own:
        for name in ("earthquakes", "ships", "storms", "countries"):
            tables = [db[name].query().to_arrow() for db in (server, own)]
            key = tables[0].column_names[0]
            one, other = (table.sort_by(key) for table in tables)
            assert one.schema.equals(other.schema, check_metadata=True) and one.equals(other)


def test_what_was_appended_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    with meridian.open(tmp_path / "a" / "b") as db:
        assert db.create("notes", NOTES).append([note(1), note(2)]).written == 2
    with meridian.open(tmp_path / "a" / "b", create=False) as db:
        assert sorted(event["properties"]["note"] for event in db["notes"].query()) == ["note 1", "note 2"]
    with pytest.raises(meridian.CannotOpen, match="there is no data folder"):
        meridian.open(tmp_path / "none", create=False)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.doc").write_text("of someone")
    with pytest.raises(meridian.CannotOpen, match="other"):
        meridian.open(tmp_path / "other")


def test_a_folder_of_another_process_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with meridian.open(tmp_path) as db:
        db.create("notes", NOTES)
        other = run("meridian.open(folder)", tmp_path)
        assert "CannotOpen" in other.stderr and "in use by another process" in other.stderr and "meridian.connect(" in other.stderr
    assert run("print(list(meridian.open(folder)))", tmp_path).stdout == "['notes']\n"


def test_a_cell_that_opens_it_may_be_run_again(tmp_path: Path) -> None:
    first = meridian.open(tmp_path)
    second = meridian.open(tmp_path / "." / "")
    first.create("notes", NOTES).append([note(1)])
    assert len(second["notes"]) == 1
    with pytest.raises(meridian.CannotOpen, match="without saved searches"):
        meridian.open(tmp_path, saved_searches=True)
    first.close()
    first.close()
    assert len(second["notes"]) == 1
    second.close()
    with pytest.raises(meridian.Closed, match="closed"):
        len(second["notes"])
    assert "notes" in meridian.open(tmp_path)


def test_one_that_is_not_closed_is_closed_as_garbage_and_at_the_end(tmp_path: Path) -> None:
    db = meridian.open(tmp_path)
    notes = db.create("notes", NOTES)
    del db
    notes.append([note(1)])
    del notes
    gc.collect()
    left = run("db = meridian.open(folder)\nprint(db['notes'].append([{'seen': '2026-01-02T00:00:00Z'}]).written)", tmp_path)
    assert (left.stdout, left.stderr) == ("1\n", "")
    with meridian.open(tmp_path) as again:
        assert len(again["notes"]) == 2


def test_a_folder_stays_open_for_as_long_as_an_answer_is_read(folder: str) -> None:
    batches = meridian.open(folder, create=False)["ships"].query().batches()
    gc.collect()
    assert sum(batch.num_rows for batch in batches) == 99_999


def test_a_handler_of_a_signal_may_close_it(tmp_path: Path) -> None:
    script = """
import os, signal, threading
db = meridian.open(folder)
stream = db.create("notes", "seen:Date").stream()
signal.signal(signal.SIGTERM, lambda *_: db.close())
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGTERM)).start()
try:
    next(stream)
except meridian.Closed:
    print("closed")
"""
    assert run(script, tmp_path).stdout == "closed\n"


def test_closing_ends_answers_and_streams_in_other_threads(tmp_path: Path) -> None:
    db = meridian.open(tmp_path)
    notes = db.create("notes", NOTES)
    notes.append(pa.table({"seen": [f"2026-01-01T00:{n // 60 % 60:02}:{n % 60:02}Z" for n in range(60_000)], "note": ["x" * 100] * 60_000}))
    batches = notes.query().batches()
    assert next(batches).num_rows > 0
    stream, ends = notes.stream(), []

    def follow() -> None:
        try:
            next(stream)
        except Exception as error:  # noqa: BLE001
            ends.append(error)

    thread = threading.Thread(target=follow)
    thread.start()
    db.close()
    thread.join(timeout=30)
    assert not thread.is_alive() and isinstance(ends[0], meridian.Closed)
    with pytest.raises(meridian.BrokenOff):
        for _ in batches:
            pass


def test_an_answer_that_is_left_does_not_keep_the_folder(tmp_path: Path) -> None:
    db = meridian.open(tmp_path)
    notes = db.create("notes", NOTES)
    notes.append(pa.table({"seen": ["2026-01-01T00:00:00Z"] * 60_000, "note": ["x" * 100] * 60_000}))
    kept = notes.query().batches()
    next(kept)
    db.close()
    assert run("print(len(meridian.open(folder)['notes']))", tmp_path).stdout == "60000\n"


def test_in_memory() -> None:
    with meridian.open() as one, meridian.open() as other:
        one.create("notes", NOTES).append([note(1)])
        assert len(one["notes"]) == 1 and "notes" not in other
        assert one["notes"].describe()["durability"] == "ephemeral"


def test_many_threads_ask_at_once(folder: str) -> None:
    with meridian.open(folder, create=False) as db:
        expected, found = db["earthquakes"].query(filter="mag >= 5").count(), []
        threads = [threading.Thread(target=lambda: found.append(db["earthquakes"].query(filter="mag >= 5").to_arrow().num_rows)) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [expected] * 16


def test_what_needs_a_server_says_so(tmp_path: Path) -> None:
    with meridian.open(tmp_path) as db:
        db.create("notes", NOTES)
        for act in (lambda: db.save_search("x", keywords="x"), db.saved_searches):
            with pytest.raises(meridian.NeedsServer, match="saved_searches=True, or run `meridian serve`"):
                act()
        with pytest.raises(meridian.Invalid, match="bing"):
            db.search("x", providers=["bing"])
        with pytest.raises(meridian.NotFound, match="tenant"):
            list(meridian.open(tmp_path, tenant="nobody"))


def test_without_the_engine_the_message_has_the_line_for_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "meridian_engine", None)
    with pytest.raises(meridian.MissingExtra, match=r"pip install meridian_engine-\*\.whl, .*\./crates/python"):
        meridian.open()


def test_a_silent_engine_is_not_waited_for_beyond_the_timeout(tmp_path: Path) -> None:
    with meridian.open(tmp_path, patience=0.0) as db:
        notes = db.create("notes", NOTES)
        # On a slow machine the head of the answer may be late already.
        with pytest.raises(Exception, match="silent|[Tt]imed out"):
            answer = db._http.open("GET", notes._path("stream"), timeout=0.2)
            while True:
                answer.read1(1 << 16)
        assert len(notes) == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_is_told_so(tmp_path: Path) -> None:
    with meridian.open(tmp_path) as db:
        db.create("notes", NOTES)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            said = "nothing"
            try:
                len(db["notes"])
            except BaseException as error:  # noqa: BLE001
                said = f"{type(error).__name__}: {error}"
            finally:
                db.close()
                os.write(write, said.encode())
                os._exit(0)
        os.waitpid(child, 0)
        said = os.read(read, 10_000).decode()
        assert said.startswith("Closed: ") and "forked" in said
        assert len(db["notes"]) == 0


def test_ctrl_c_ends_a_wait(tmp_path: Path) -> None:
    script = """
db = meridian.open(folder)
stream = db.create("notes", "seen:Date").stream()
print("waits", flush=True)
try:
    next(stream)
except KeyboardInterrupt:
    print("interrupted", len(db["notes"]), flush=True)
"""
    command = [sys.executable, "-c", f"import meridian\nfolder = {str(tmp_path)!r}\n{script}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "waits\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted 0\n"
        assert process.wait(timeout=60) == 0
