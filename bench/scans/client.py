"""Closed-loop clients, each with one scan at a time, and what they saw."""

import asyncio
import dataclasses
import hashlib
import json
import random
import time

from scans import Scans


def digest(bodies):
    """What the events of a scan's answers are, whatever their order and whatever stands around them."""
    features = [feature for body in bodies for feature in json.loads(body)["features"]]
    lines = sorted(json.dumps(feature, sort_keys=True) for feature in features)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class Connection:
    """Keep-alive HTTP/1.1 to one server."""

    def __init__(self, port):
        self.port, self.reader, self.writer = port, None, None

    async def get(self, target):
        """Status and body."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        self.writer.write(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
        await self.writer.drain()
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
        status = int(head.split(" ", 2)[1])
        if "transfer-encoding: chunked" in head:
            body = b""
            while size := int((await self.reader.readline()).split(b";")[0], 16):
                body += await self.reader.readexactly(size)
                await self.reader.readline()
            await self.reader.readline()
        else:
            length = next((int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
            body = await self.reader.readexactly(length)
        return status, body

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


async def scan(connection, scans, number, eventual):
    """One scan, tablet by tablet as a client of the study crosses them: its digest, or a sentence that says what went wrong."""
    bodies = []
    try:
        for tablet in scans.tablets[number]:
            status, body = await connection.get(Scans.target(number, tablet, eventual))
            if status != 200:
                return None, f"{status} {body[:200].decode(errors='replace')}"
            bodies.append(body)
        return digest(bodies), None
    except (OSError, asyncio.IncompleteReadError, ValueError) as error:
        connection.close()
        return None, repr(error)


async def _digests(port, scans, numbers, eventual):
    connection = Connection(port)
    found = {}
    for number in numbers:
        found[number], wrong = await scan(connection, scans, number, eventual)
        if wrong:
            raise SystemExit(f"bench: scan {number}: {wrong}")
    connection.close()
    return found


def digests(port, scans, numbers, eventual):
    """The digest of each of these scans, one after the other."""
    return asyncio.run(_digests(port, scans, numbers, eventual))


@dataclasses.dataclass
class Seen:
    """What came of a load: seconds that each counted scan took, scans that failed, answers that differ, and all scans that ended."""

    took: list = dataclasses.field(default_factory=list)
    failed: list = dataclasses.field(default_factory=list)
    differ: list = dataclasses.field(default_factory=list)
    ended: int = 0
    complete: bool = False


class Load:
    """Clients that scan until `wanted` scans that began after the warm-up have ended, or `most_s` is over.

    The scans are counted by when they begin, so that long ones are not cut off more often than short ones. `expected` is the digest of each scan
    as the owner answers it: every answer is held against it. `begins` is called once the warm-up is over, and `each` with every scan that ends.
    """

    def __init__(self, ports, scans, expected, threads, wanted, eventual, pause_s=0.0, warm_s=0.0, most_s=1200.0, begins=None, seed=1):
        self.ports, self.scans, self.expected, self.threads, self.wanted, self.eventual = ports, scans, expected, threads, wanted, eventual
        self.pause_s, self.warm_s, self.most_s, self.begins, self.seed = pause_s, warm_s, most_s, begins, seed
        self.seen, self.begun, self.open = Seen(), 0, False

    def run(self):
        """Runs it to its end."""
        asyncio.run(self._run())
        return self.seen

    async def _run(self):
        self.over = asyncio.Event()
        clients = [asyncio.create_task(self._client(n)) for n in range(self.threads)]
        opening = asyncio.create_task(self._open())
        try:
            await asyncio.wait_for(self.over.wait(), self.most_s)
            self.seen.complete = True
        except TimeoutError:
            pass
        for task in [opening, *clients]:
            task.cancel()
        done = await asyncio.gather(opening, *clients, return_exceptions=True)
        for error in done:
            if isinstance(error, Exception):
                raise error

    async def _open(self):
        await asyncio.sleep(self.warm_s)
        if self.begins:
            await asyncio.to_thread(self.begins)
        self.open = True

    async def _client(self, n):
        rng, connection, seen = random.Random(self.seed * 10_000 + n), Connection(self.ports[n % len(self.ports)]), self.seen
        try:
            while True:
                number = rng.randrange(len(self.scans.tablets))
                began = time.monotonic()
                counts = self.open and self.begun < self.wanted
                self.begun += counts
                # What a client takes to choose a server and to send its first request.
                await asyncio.sleep(self.pause_s)
                found, wrong = await scan(connection, self.scans, number, self.eventual)
                seen.ended += 1
                if wrong:
                    seen.failed.append(wrong)
                elif self.expected and found != self.expected[number]:
                    seen.differ.append(number)
                if counts:
                    seen.took.append(time.monotonic() - began)
                    if len(seen.took) >= self.wanted:
                        self.over.set()
        finally:
            connection.close()
