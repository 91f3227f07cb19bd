"""Thousands of open streams of saved searches, read by one thread."""

import re
import select
import socket
import threading
import time

EVENT = re.compile(rb"id: (\d+)\ndata: (\{.*)", re.DOTALL)


class Readers(threading.Thread):
    """Opens a stream for each path, and hands each packet on: `take(stream, data, seconds)`. Numbers must follow each other without a gap."""

    def __init__(self, port, paths, take, a_second=1_000):
        super().__init__(daemon=True)
        self.port, self.paths, self.take, self.pause = port, paths, take, 1 / a_second
        self.poll, self.stopped, self.opened = select.epoll(), threading.Event(), threading.Event()
        self.streams, self.refused, self.gaps, self.packets, self.ended = {}, 0, 0, 0, 0

    def run(self):
        began = time.monotonic()
        for number, path in enumerate(self.paths):
            self.open(number, path)
            while (due := began + number * self.pause) > time.monotonic():
                self.once(due - time.monotonic())
        self.opened.set()
        while not self.stopped.is_set():
            self.once(0.1)
        for stream in self.streams.values():
            stream[0].close()

    def open(self, number, path):
        connection = socket.create_connection(("127.0.0.1", self.port), 30)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        connection.setblocking(False)
        # Socket, its number, what has come of the next packet, whether the head was seen, the packet that is due.
        self.streams[connection.fileno()] = [connection, number, b"", False, None]
        self.poll.register(connection.fileno(), select.EPOLLIN)

    def once(self, seconds):
        """Reads what has arrived, and waits this long for it."""
        for descriptor, _ in self.poll.poll(max(seconds, 0)):
            stream = self.streams[descriptor]
            try:
                data = stream[0].recv(1 << 16)
            except BlockingIOError:
                continue
            now = time.monotonic()
            if not data:
                self.ended += 1
                self.poll.unregister(descriptor)
                continue
            *whole, stream[2] = (stream[2] + data).split(b"\n\n")
            for text in whole:
                self.event(stream, text, now)

    def event(self, stream, text, now):
        if not stream[3]:
            stream[3] = True
            self.refused += not text.startswith(b"HTTP/1.1 200")
        found = EVENT.search(text)
        if found:
            seq = int(found[1])
            self.gaps += stream[4] not in (None, seq)
            stream[4] = seq + 1
            self.packets += 1
            self.take(stream[1], found[2], now)

    def end(self):
        """Leaves all streams."""
        self.stopped.set()
        self.join()
