"""A relay that does not tell the server that its client has left, as a proxy that keeps asking does: cancellation switched off.

It runs in a process of its own, on the lab's core.
"""

import contextlib
import multiprocessing
import os
import socket
import threading

from rig import OTHER_CORE

CHUNK = 1 << 18
# What ends an answer that is sent as it is made; one that is not ends with a silence.
LAST_CHUNK = b"0\r\n\r\n"
SILENCE_S = 60


class Relay:
    """Passes bytes on between clients and one port, until it is closed."""

    def __init__(self, port):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.process = multiprocessing.get_context("fork").Process(target=serve, args=(self.listener, port), daemon=True)
        self.process.start()

    def close(self):
        self.process.terminate()
        self.process.join()
        self.listener.close()


def serve(listener, port):
    os.sched_setaffinity(0, {int(OTHER_CORE)})
    while True:
        client, _ = listener.accept()
        threading.Thread(target=joined, args=(client, port), daemon=True).start()


def joined(client, port):
    """One connection. The client's requests go to the server. The server's responses are read to their end, with or without the client."""
    with client, socket.create_connection(("127.0.0.1", port)) as server:
        server.settimeout(SILENCE_S)
        pair = Pair(client, server)
        up = threading.Thread(target=pair.ask, daemon=True)
        up.start()
        pair.answer()
        # Wakes the other direction, where the client is still there.
        for one in (client, server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        up.join()


class Pair:
    """A client's connection and the server's."""

    def __init__(self, client, server):
        self.client, self.server, self.waits, self.gone = client, server, False, False

    def ask(self):
        """Until the client leaves; a server that owes nothing is left too."""
        while asked := received(self.client):
            self.waits = True
            self.server.sendall(asked)
        self.gone = True
        if not self.waits:
            with contextlib.suppress(OSError):
                self.server.shutdown(socket.SHUT_RDWR)

    def answer(self):
        """Until the server ends, or has said all to a client that is gone."""
        tail = b""
        while said := received(self.server):
            if not self.gone:
                with contextlib.suppress(OSError):
                    self.client.sendall(said)
            tail = (tail + said)[-len(LAST_CHUNK):]
            if tail == LAST_CHUNK:
                self.waits = False
                if self.gone:
                    return


def received(one):
    try:
        return one.recv(CHUNK)
    except OSError:
        return b""
