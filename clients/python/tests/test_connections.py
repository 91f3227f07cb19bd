"""Refusals, retries, broken answers, tokens, TLS and the environment."""

from __future__ import annotations

import io
import json
import os
import pickle
import sys
import threading
import types
from typing import Any

import meridian
import pyarrow as pa
import pytest
from meridian._events import messages

from stub import Stub, response

PROBLEM = "Content-Type: application/problem+json"


def problem(status: str, kind: str, *headers: str, **members: Any) -> bytes:
    document = {"type": f"urn:meridian:problem:{kind}", "title": "T", "status": int(status[:3]), "detail": "d", **members}
    return response(status, json.dumps(document).encode(), PROBLEM, *headers)


def client(stub: Stub, **options: Any) -> meridian.Database:
    return meridian.connect(stub.url, token="secret", **{"patience": 5.0, "timeout": 5.0, **options})


def test_problems_are_exceptions_with_their_details(db: meridian.Database) -> None:
    with pytest.raises(meridian.NotFound) as absent:
        db["nowhere"].query().count()
    assert (absent.value.status, absent.value.kind) == (404, "not-found") and absent.value.request_id
    with pytest.raises(meridian.Invalid) as wrong:
        list(db["earthquakes"].query(filter="magnitude > 3"))
    assert wrong.value.field == "filter" and "magnitude" in str(wrong.value)
    with pytest.raises(meridian.TooLate):
        db["earthquakes"].query(timeout=0.001, filter="place LIKE '%a%b%c%d%'").count()
    with pytest.raises(meridian.NotFound):
        db["nowhere"].get("x")
    again = pickle.loads(pickle.dumps(absent.value))
    assert (type(again), str(again)) == (meridian.NotFound, str(absent.value))


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_a_refusal_for_load_is_asked_again_after_the_time_that_it_names(status: str) -> None:
    ok = response("200 OK", b'{"name":"meridian"}')
    with Stub(lambda n, *_: problem(status, "overloaded", "Retry-After: 0.05") if n < 3 else ok) as stub:
        assert client(stub).version() == {"name": "meridian"}
        assert len(stub.heads) == 3
        assert all("Authorization: Bearer secret" in head for head in stub.heads)


def test_patience_ends_and_damage_is_not_waited_for() -> None:
    with Stub(lambda *_: problem("503 Service Unavailable", "overloaded", "Retry-After: 60")) as stub:
        with pytest.raises(meridian.Overloaded):
            client(stub).version()
        assert len(stub.heads) == 1
    with Stub(lambda *_: problem("503 Service Unavailable", "damaged")) as stub:
        with pytest.raises(meridian.Overloaded, match="d"):
            client(stub).version()
        assert len(stub.heads) == 1


def test_a_write_without_an_answer_is_sent_again_under_its_key() -> None:
    receipt = response("201 Created", b'{"written":1,"replaced":0,"duplicates":0,"position":"1"}')
    with Stub(lambda n, *_: b"" if n == 1 else receipt) as stub:
        assert client(stub)["x"].append(pa.table({"a": [1]})).written == 1
        keys = [line for head in stub.heads for line in head.split("\r\n") if line.startswith("Idempotency-Key")]
    assert len(keys) == 2 and len(set(keys)) == 1


def test_a_deletion_without_an_answer_is_not_repeated() -> None:
    with Stub(lambda *_: b"") as stub:
        with pytest.raises(meridian.Unreachable):
            client(stub)["x"].delete(filter="TRUE")
        assert len(stub.heads) == 1


def arrow_bytes() -> bytes:
    sink = io.BytesIO()
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    with pa.ipc.new_stream(sink, schema) as writer:
        for start in range(0, 30_000, 10_000):
            writer.write_batch(pa.record_batch([[str(n) for n in range(start, start + 10_000)], range(start, start + 10_000)], schema=schema))
    return sink.getvalue()


@pytest.mark.parametrize("cut", [10, 5_000, 200_000, -1, None])
def test_an_answer_that_breaks_off_is_an_error(cut: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is read ahead, so that only a look for it finds that the end is missing.
    monkeypatch.setattr("meridian._arrow.READ_BYTES", 1)
    # Chunked, as the server streams: the end of the connection is not the end of the answer.
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    part = arrow_bytes()[:cut]
    with Stub(lambda *_: head + f"{len(part):x}\r\n".encode() + part + b"\r\n") as stub, pytest.raises(meridian.BrokenOff):
        client(stub)["x"].query().to_arrow()
    lines = b'{"type":"Feature","id":"1"}\n' * 3
    with Stub(lambda *_: head + f"{len(lines):x}\r\n".encode() + lines + b"\r\n") as stub, pytest.raises(meridian.BrokenOff):
        list(client(stub)["x"].query())


def test_missing_data_is_warned_of() -> None:
    with Stub(lambda *_: response("200 OK", arrow_bytes(), "Meridian-Missing: 2")) as stub:
        with pytest.warns(meridian.MissingData, match="2 damaged files"):
            assert client(stub)["x"].query().to_arrow().num_rows == 30_000


def test_a_stream_goes_on_where_it_was_ended_and_ends_with_its_collection() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
    first = head + b': hello\n\nid: 5\n\nid: 6\ndata: {"n":1}\n\nid: 7\nevent: end\ndata: {"reason":"lifetime","after":"7"}\n\n'
    # The second one is cut within a message, the third says that there is no more.
    second = head + b'id: 8\r\ndata: {"n":2}\r\n\r\nid: 9\r\ndata: {"n"'
    third = head + b'id: 9\nevent: missing\ndata: {"detail":"x"}\n\nevent: end\ndata: {"reason":"gone","detail":"removed","after":"9"}\n\n'
    with Stub(lambda n, *_: (first, second, third)[n - 1]) as stub:
        stream = client(stub)["x"].stream()
        assert [next(stream)["n"], next(stream)["n"]] == [1, 2]
        with pytest.raises(meridian.Gone, match="removed"):
            next(stream)
        assert list(stream) == []
        asked = [head.split(" ")[1].partition("?")[2] for head in stub.heads]
    assert asked == ["", "after=7", "after=8"]


def test_a_stream_that_never_began_is_an_error() -> None:
    # Without its first message there is no position to resume from, and events would be lost.
    with Stub(lambda *_: b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n") as stub:
        with pytest.raises(meridian.Unreachable, match="before it began"):
            client(stub)["x"].stream()


def test_closing_a_stream_ends_a_wait_in_another_thread() -> None:
    # A real server says something every 15 s, which would wake the thread too.
    head, hold = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\nid: 5\n\n", threading.Event()
    with Stub(lambda *_: head, hold) as stub:
        try:
            stream = client(stub)["x"].stream()
            found: list[Any] = []
            waiting = threading.Thread(target=lambda: found.extend(stream), daemon=True)
            waiting.start()
            stream.close()
            waiting.join(timeout=30)
            assert not waiting.is_alive() and found == []
        finally:
            hold.set()


def test_closing_batches_ends_a_read_in_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is read ahead, so that the first batch arrives.
    monkeypatch.setattr("meridian._arrow.READ_BYTES", 1)
    # The server is silent amid the answer, and the client would wait for its `timeout`.
    head, part, hold = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", arrow_bytes()[:200_000], threading.Event()
    with Stub(lambda *_: head + f"{len(part):x}\r\n".encode() + part + b"\r\n", hold) as stub:
        try:
            batches, ends = client(stub, timeout=600.0)["x"].query().batches(), []

            def read() -> None:
                try:
                    ends.append(list(batches))
                except meridian.BrokenOff as error:
                    ends.append(str(error))

            reading, closing = threading.Thread(target=read, daemon=True), threading.Thread(target=batches.close, daemon=True)
            reading.start()
            # Where it waits, the buffer is held.
            reading.join(timeout=0.3)
            closing.start()
            for thread in (closing, reading):
                thread.join(timeout=30)
                assert not thread.is_alive()
            assert ends == ["the answer broke off: it was closed before its end"]
        finally:
            hold.set()


def test_closed_batches_give_nothing_that_was_read_ahead() -> None:
    with Stub(lambda *_: response("200 OK", arrow_bytes())) as stub:
        for before in (0, 1):
            batches = client(stub)["x"].query().batches()
            for _ in range(before):
                assert next(batches).num_rows == 10_000
            batches.close()
            for _ in range(2):
                with pytest.raises(meridian.BrokenOff, match="it was closed before its end"):
                    next(batches)
        with client(stub)["x"].query().batches() as whole:
            assert sum(batch.num_rows for batch in whole) == 30_000
        # It was complete before it was closed.
        assert list(whole) == []


def test_the_plain_text_of_a_refusal_is_its_detail() -> None:
    said = response("400 Bad Request", b"This port speaks TLS:\x1b use https, not http.\nmore\n", "Content-Type: text/plain; charset=utf-8")
    with Stub(lambda *_: said) as stub, pytest.raises(meridian.Invalid) as refused:
        client(stub).version()
    assert refused.value.detail == "This port speaks TLS: use https, not http."
    for other in (response("400 Bad Request", b"<p>x", "Content-Type: text/html"), response("400 Bad Request", b"\n", "Content-Type: text/plain")):
        with Stub(lambda *_: other) as stub, pytest.raises(meridian.Invalid, match="no problem details"):
            client(stub).version()
    long = response("502 Bad Gateway", b"x" * 100_000, "Content-Type: text/plain")
    with Stub(lambda *_: long) as stub, pytest.raises(meridian.Problem) as cut:
        client(stub).version()
    assert cut.value.status == 502 and len(cut.value.detail) == 500


def test_a_name_that_an_address_resolves_is_refused() -> None:
    with Stub(lambda *_: response("200 OK", b"{}")) as stub:
        db = client(stub)
        for name in (".", ".."):
            for act in (db[name].describe, lambda: db["x"].get(name), lambda: db.drop(name), lambda: db[name].query().batches()):
                with pytest.raises(ValueError, match="names nothing"):
                    act()
        with pytest.raises(ValueError, match="names nothing"):
            db.drop("")
        assert stub.heads == []


@pytest.mark.parametrize("kind", [meridian.Batches, meridian.Database, meridian.Packets, meridian.Results, meridian.Search, meridian.Stream])
def test_a_block_with_one_has_its_type(kind: Any) -> None:
    for name in ("__enter__", "__aenter__"):
        assert not hasattr(kind, name) or getattr(kind, name).__annotations__["return"] == "Self"


def test_messages_arrive_in_any_pieces() -> None:
    text = 'id: 1\n\n: x\nid: 2\nevent: end\ndata: {"a":\ndata: "ü"}\n\ndata: last\n\n'.encode()
    for size in (1, 2, 7, 1_000):
        pieces = [text[at : at + size] for at in range(0, len(text), size)] + [b""]
        answer: Any = types.SimpleNamespace(read1=lambda *_, **__: pieces.pop(0))
        found = [(m.event, m.data, m.id) for m in messages(answer)]
        assert found == [("message", "", "1"), ("end", '{"a":\n"ü"}', "2"), ("message", "last", None)]


def test_nobody_there(tmp_path: Any) -> None:
    # Port 9 (discard) on loopback: nothing listens there.
    db = meridian.connect("http://127.0.0.1:9", patience=0.3)
    with pytest.raises(meridian.Unreachable, match="127.0.0.1:9"):
        db.version()
    with pytest.raises(meridian.Unreachable):
        db["x"].stream(patience=0)
    for wrong in ("localhost:7117", "ftp://x", "http://u:p@x", "http://x?y=1"):
        with pytest.raises(ValueError):
            meridian.connect(wrong)


def test_a_token_in_plain_is_warned_of(recwarn: pytest.WarningsRecorder) -> None:
    for here in ("http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1", "https://events.example.org"):
        meridian.connect(here, token="t")
    assert not recwarn
    for there in ("http://events.example.org", "http://192.0.2.7:7117"):
        with pytest.warns(UserWarning, match="use https"):
            meridian.connect(there, token="t")


def test_a_missing_package_is_named_with_its_extra(db: meridian.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(meridian.MissingExtra, match=r'pip install polars, or "\./clients/python\[polars\]"'):
        db["earthquakes"].query(limit=1).to_polars()


@pytest.fixture
def secured(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A server with TLS and tokens: scripts/python_test.sh starts it."""
    names = ("URL", "CA", "READER", "WRITER")
    return {name.lower(): os.environ[f"MERIDIAN_TEST_TLS_{name}"] for name in names}


def test_tokens_and_tls(secured: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    url, ca = secured["url"], secured["ca"]
    reader = meridian.connect(url, token=secured["reader"], ca=ca)
    assert len(reader["storms"]) == 692 == sum(1 for _ in reader["storms"].query())
    with pytest.raises(meridian.Denied) as denied:
        reader["storms"].delete(filter="TRUE")
    assert denied.value.status == 403
    writer = meridian.connect(url, token=secured["writer"], ca=ca)
    with writer["storms"].stream() as stream:
        fake = {"storm_id": "x", "start": "2030-01-01T00:00:00Z", "end": "2030-01-02T00:00:00Z", "points": 0}
        assert writer["storms"].append([fake]).written == 1
        assert next(stream)["properties"]["storm_id"] == "x"
    assert writer["storms"].delete(filter="storm_id = 'x'") == 1
    with pytest.raises(meridian.Denied) as nobody:
        meridian.connect(url, ca=ca).collections()
    assert nobody.value.status == 401
    with pytest.raises(meridian.Unreachable, match="MERIDIAN_CA"):
        meridian.connect(url, token=secured["reader"]).collections()
    with pytest.raises(ValueError, match="ca: "):
        meridian.connect(url, ca="/nowhere/ca.pem")
    for name in ("URL", "CA"):
        monkeypatch.setenv(f"MERIDIAN_{name}", secured[name.lower()])
    monkeypatch.setenv("MERIDIAN_TOKEN", secured["reader"] + "\n")
    assert "storms" in meridian.connect()
