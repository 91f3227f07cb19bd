"""bench-compression: what a compressed answer costs the server, and what it saves on the wire.

Answers in several formats, each read plain and in each coding, in alternating rounds, one after the other. The figure
is the server's processor time for a byte of the plain answer: it holds on a loaded machine better than a rate. What a
coding costs is its figure less the plain one's. Every coded answer is decoded once and compared with the plain one
before anything is timed.

    make bench-compression                      at the default sizes
    make bench-compression ARGS="--rounds 1"    shorter
"""

import argparse
import gzip
import http.client
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import data
from common import cpu_seconds, need, say, save, settle, steal_and_load
from peers import meridian, start_meridian

CODINGS = ["identity", "gzip", "br", "zstd"]
FORMATS = {"geojson": "items?f=json&limit=10000", "ndjson": "items?f=ndjson", "csv": "items?f=csv", "arrow": "items?f=arrow",
           "page": "items?limit=100", "tile": "tiles/WebMercatorQuad/2/1/3"}
# Small answers are asked for again and again, so that a round has some seconds of work.
SMALL_BYTES = 32 << 20


def read(server, path, coding):
    """One answer: its coding and its bytes as they are sent."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    connection.request("GET", path, headers={"Accept-Encoding": coding})
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        sys.exit(f"bench: {path}: {answer.status} {body[:200]!r}")
    connection.close()
    return answer.getheader("Content-Encoding", "identity"), body


def decoded(coding, body):
    """The plain bytes. Other programs decode than encoded."""
    if coding == "gzip":
        return gzip.decompress(body)
    if coding == "identity":
        return body
    return subprocess.run({"br": ["brotli", "-dc"], "zstd": ["zstd", "-dqc"]}[coding], input=body, capture_output=True, check=True).stdout


def same(plain, other):
    """Whether two answers are the same except for the time that a page says."""
    without = lambda answer: re.sub(rb'"timeStamp":"[^"]*"', b"", answer)
    return without(plain) == without(other)


def main():
    """Measures and keeps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    need("brotli", "zstd")
    quiet, found = [steal_and_load()], {name: {coding: {"runs": []} for coding in CODINGS} for name in FORMATS}
    with tempfile.TemporaryDirectory() as folder, start_meridian(pathlib.Path(folder)) as server:
        meridian(server, "create", "events", "--schema", data.SCHEMA)
        meridian(server, "load", "events", *data.events(options.rows, options.seed), "--quiet")
        settle(server.pid)
        for name, path in FORMATS.items():
            target, plain = f"/collections/events/{path}", None
            for coding in CODINGS:
                used, body = read(server, target, coding)
                if used != coding:
                    sys.exit(f"bench: {name}: asked for {coding}, got {used}")
                plain = body if plain is None else plain
                if not same(plain, decoded(coding, body)):
                    sys.exit(f"bench: {name}: {coding} decodes to something else")
                found[name][coding] |= {"plain_bytes": len(plain), "sent_bytes": len(body)}
        for number in range(options.rounds):
            for name, path in FORMATS.items():
                for coding in CODINGS:
                    one = found[name][coding]
                    times = max(1, SMALL_BYTES // one["plain_bytes"])
                    before = cpu_seconds(server.pid)
                    for _ in range(times):
                        read(server, f"/collections/events/{path}", coding)
                    one["runs"].append((cpu_seconds(server.pid) - before) * 1e9 / (times * one["plain_bytes"]))
            say(f"round {number + 1} of {options.rounds}")
    quiet.append(steal_and_load())
    save("compression", {"rows": options.rows, "rounds": options.rounds, "formats": found, "quiet": quiet})


if __name__ == "__main__":
    main()
