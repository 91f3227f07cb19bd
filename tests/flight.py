"""Reads and writes a live server over Arrow Flight with pyarrow, and compares its answers with those over HTTP.

usage: flight.py plain URL LOCATION COLLECTION NUMBER
       flight.py secured LOCATION CERTIFICATE READER WRITER COLLECTION
"""

import concurrent.futures
import json
import struct
import sys
import urllib.parse
import urllib.request

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import flight


def command(**question):
    return flight.FlightDescriptor.for_command(json.dumps(question))


def over_http(url, collection, **parameters):
    query = urllib.parse.urlencode({**parameters, "f": "arrow"})
    with urllib.request.urlopen(f"{url}/collections/{collection}/items?{query}") as answer:
        return pa.ipc.open_stream(answer.read()).read_all()


def count(url, collection):
    with urllib.request.urlopen(f"{url}/collections/{collection}/aggregate") as answer:
        return json.load(answer)["groups"][0]["count"]


def asked(client, options=None, **question):
    info = client.get_flight_info(command(**question), options)
    (endpoint,) = info.endpoints
    return info, client.do_get(endpoint.ticket, options).read_all()


def fails(error, call, words):
    try:
        call()
    except error as e:
        assert words in str(e), e
        return e
    raise AssertionError(f"expected {error.__name__} with {words!r}")


def events(first, rows):
    """A table of points, as the collection that it is written to has them."""
    numbers = range(first, first + rows)
    places = [struct.pack("<BIdd", 1, 1, n % 360 - 180, n % 180 - 90) for n in numbers]
    return pa.table({"n": pa.array(numbers, pa.int64()), "note": [f"note {n}" for n in numbers], "geom": places})


def plain(url, location, collection, number):
    client = flight.FlightClient(location)
    # Reads: each answer has the rows and the schema of the one over HTTP.
    for question, parameters in [
        ({}, {}),
        ({"bbox": [-125, 32, -114, 42]}, {"bbox": "-125,32,-114,42"}),
        ({"filter": f"{number} > 6"}, {"filter": f"{number} > 6"}),
        ({"filter": {"op": ">", "args": [{"property": number}, 6.5]}}, {"filter": f"{number} > 6.5"}),
        ({"datetime": "1990-01-01T00:00:00Z/..", "fields": [number]}, {"datetime": "1990-01-01T00:00:00Z/..", "properties": number}),
        ({"sortby": f"-{number}", "limit": 50}, {"sortby": f"-{number}", "limit": 50}),
        ({"near": [-120, 37], "nearest": 20}, {"near": "-120,37", "nearest": 20}),
    ]:
        info, table = asked(client, collection=collection, **question)
        expected = over_http(url, collection, **parameters)
        assert table.equals(expected), question
        assert info.schema.equals(expected.schema), question
        assert info.total_records in (-1, table.num_rows), question
        print(f"{question}: {table.num_rows} rows")
    # The last message, and a stream that is read batch by batch.
    ticket = client.get_flight_info(command(collection=collection)).endpoints[0].ticket
    chunks = list(client.do_get(ticket))
    last = json.loads(chunks[-1].app_metadata.to_pybytes())
    assert last["complete"] and last["rows"] == sum(chunk.data.num_rows for chunk in chunks) == count(url, collection)
    # DuckDB, over a table and over a stream.
    whole = client.do_get(ticket).read_all()
    reader = client.do_get(ticket).to_reader()
    for source in (whole, reader):
        (found,) = duckdb.sql(f"SELECT count(*), max({number}) FROM source").fetchall()
        assert found == (whole.num_rows, pc.max(whole[number]).as_py()), found
    # Parts, each by a thread and a client of its own.
    info = client.get_flight_info(command(collection=collection, parallel=4))
    assert len(info.endpoints) > 1 and info.total_records == whole.num_rows
    with concurrent.futures.ThreadPoolExecutor() as pool:
        parts = list(pool.map(lambda end: flight.FlightClient(location).do_get(end.ticket).read_all(), info.endpoints))
    key = whole.column_names[0]
    together = pa.concat_tables(parts).sort_by(key)
    assert together.equals(whole.sort_by(key))
    print(f"{len(parts)} parts of {[part.num_rows for part in parts]} rows")
    # Groups.
    _, groups = asked(client, collection=collection, kind="aggregate", function=f"count,max({number})", window="P3650D")
    assert sum(groups["count"].to_pylist()) == whole.num_rows and pc.max(groups[f"max({number})"]) == pc.max(whole[number])
    # The list.
    assert [info.descriptor.path for info in client.list_flights()] == [[collection.encode()]]
    # Writes.
    made = urllib.request.Request(f"{url}/collections/written", b"n:Integer,note:String,*geom:Point", {"Content-Type": "text/plain"}, method="PUT")
    urllib.request.urlopen(made).close()
    table = events(0, 20_000)
    writer, results = client.do_put(flight.FlightDescriptor.for_path("written"), table.schema)
    writer.write_table(table, max_chunksize=3_000)
    writer.done_writing()
    acks = []
    while (ack := results.read()) is not None:
        acks.append(json.loads(ack.to_pybytes()))
    writer.close()
    assert acks[-1]["written"] == 20_000 and acks[-1]["batches"] == 7, acks
    # Again with a key, twice, waiting for each batch; a client that reads no result writes as well.
    for _ in range(2):
        more = events(50_000, 1_000)
        writer, results = client.do_put(command(collection="written", idempotency_key="load"), more.schema)
        for batch in more.to_batches(max_chunksize=250):
            writer.write_batch(batch)
            json.loads(results.read().to_pybytes())
        writer.close()
    silent = events(80_000, 500)
    writer, _ = client.do_put(flight.FlightDescriptor.for_path("written"), silent.schema)
    writer.write_table(silent)
    writer.close()
    assert count(url, "written") == 21_500
    _, back = asked(client, collection="written", filter="n < 20000")
    back = back.sort_by("n")
    for column in table.column_names:
        assert back[column].cast(table[column].type).equals(table[column]), column
    wrong = pa.table({"colour": [1]})
    writer, _ = client.do_put(flight.FlightDescriptor.for_path("written"), wrong.schema)

    def refused():
        writer.write_table(wrong)
        writer.close()

    fails(pa.ArrowInvalid, refused, "colour")
    fails(pa.ArrowInvalid, lambda: client.get_flight_info(command(collection=collection, filter="n >")), "")
    fails(KeyError, lambda: client.get_flight_info(command(collection="absent")), "absent")


def secured(location, certificate, reader, writer, collection):
    roots = open(certificate, "rb").read()
    client = flight.FlightClient(location, tls_root_certs=roots)

    def options(token):
        return flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {token}".encode())])

    fails(flight.FlightUnauthenticatedError, lambda: client.get_flight_info(command(collection=collection)), "token")
    fails(flight.FlightUnauthenticatedError, lambda: asked(client, options("x"), collection=collection), "token")
    _, table = asked(client, options(reader), collection=collection, limit=5)
    assert table.num_rows == 5
    # A user name and a password, as clients of databases have them: the token is the password.
    pair = client.authenticate_basic_token("me", reader)
    _, table = asked(client, flight.FlightCallOptions(headers=[pair]), collection=collection, limit=3)
    assert table.num_rows == 3

    def put(token):
        table = events(0, 10)
        put, results = client.do_put(flight.FlightDescriptor.for_path("written"), table.schema, options(token))
        put.write_table(table)
        put.done_writing()
        ack = results.read()
        put.close()
        return json.loads(ack.to_pybytes())

    fails(flight.FlightUnauthorizedError, lambda: put(reader), "reader")
    assert put(writer)["written"] == 10
    # Without TLS nothing is said.
    open_client = flight.FlightClient(location.replace("grpc+tls", "grpc+tcp"))
    fails(pa.ArrowException, lambda: asked(open_client, options(reader), collection=collection), "")


mode, *arguments = sys.argv[1:]
{"plain": plain, "secured": secured}[mode](*arguments)
print(f"flight, {mode}: pyarrow and DuckDB agree with HTTP")
