"""Progress in a notebook: one line that is drawn again, once something takes longer than a second."""

from __future__ import annotations

import sys
import time
from typing import Any

AFTER_S = 1.0
EVERY_S = 0.25


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this code."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Progress:
    """Counts rows; shown in a notebook unless `wanted` is false."""

    def __init__(self, what: str, total: int | None, wanted: bool | None) -> None:
        self._what, self._total = what, total
        self._shown = in_notebook() if wanted is None else wanted
        self._started = self._drawn = time.monotonic()
        self._handle: Any = None
        self.done = 0

    def add(self, rows: int) -> None:
        """Counts `rows` more."""
        self.done += rows
        now = time.monotonic()
        if self._shown and now - self._started >= AFTER_S and now - self._drawn >= EVERY_S:
            self._drawn = now
            self._draw()

    def finish(self) -> None:
        """Draws the last state, if something was drawn before."""
        if self._handle is not None:
            self._draw()

    def text(self) -> str:
        """The line in words."""
        rate = self.done / max(time.monotonic() - self._started, 1e-9)
        of = f" of {self._total:,}" if self._total is not None else ""
        return f"{self._what}: {self.done:,}{of} events, {rate:,.0f}/s"

    def _draw(self) -> None:
        if not in_notebook():
            sys.stderr.write("\r" + self.text())
            self._handle = True
            return
        display: Any = sys.modules["IPython"].display
        share = f' value="{self.done}" max="{self._total}"' if self._total else ""
        html = display.HTML(f"<progress{share}></progress> {self.text()}")
        if self._handle is None:
            self._handle = display.display(html, display_id=True)
        else:
            self._handle.update(html)
