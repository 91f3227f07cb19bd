"""A server that answers as a test says, over a plain socket: what a real one does only in trouble."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import TracebackType

Respond = Callable[[int, str, bytes], bytes]


def response(status: str, body: bytes = b"", *headers: str) -> bytes:
    """An answer with these header lines."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


class Stub:
    """Answers each connection once by `answer(number, head, body)`, and closes it once `hold` is set, by default at once."""

    def __init__(self, answer: Respond, hold: threading.Event | None = None) -> None:
        self._hold = hold
        self.heads: list[str] = []
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                data = b""
                while b"\r\n\r\n" not in data and (piece := connection.recv(65536)):
                    data += piece
                head, _, body = data.partition(b"\r\n\r\n")
                text = head.decode()
                length = next((int(l[15:]) for l in text.split("\r\n") if l.lower().startswith("content-length:")), 0)
                while len(body) < length and (piece := connection.recv(65536)):
                    body += piece
                self.heads.append(text)
                connection.sendall(self._answer(len(self.heads), text, body))
                if self._hold is not None:
                    self._hold.wait()

    def __enter__(self) -> Stub:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # `close` alone leaves a thread in `accept` for ever.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
