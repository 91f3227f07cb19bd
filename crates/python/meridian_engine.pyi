"""The engine of Meridian in this process. Programs use it through `meridian.open`."""

__version__: str

class Engine:
    """A data folder that this process has open."""

    def __new__(cls, folder: str | None, create: bool, saved_searches: bool) -> Engine:
        """Opens a folder; `None` keeps all in memory. `BlockingIOError`: another process has it open."""

    def request(
        self, method: str, target: str, headers: list[tuple[str, str]], body: bytes | None, timeout: float | None
    ) -> EngineResponse:
        """The head of the answer. `TimeoutError` after so many seconds; `ConnectionError`: it is closed."""

    def close(self) -> None:
        """Ends what runs, and closes the folder. Repeated, it does nothing."""

class EngineResponse:
    """An answer. Reads wait for at most the timeout of its request."""

    mode: str
    status: int
    headers: list[tuple[str, str]]
    closed: bool

    def read(self, amt: int | None = None) -> bytes:
        """So many bytes, or fewer at the end; by default all."""

    def read1(self, amt: int | None = None) -> bytes:
        """What has arrived, at most so many bytes; it waits if that is nothing."""

    def close(self) -> None:
        """Ends the work on it, and a wait in another thread."""
