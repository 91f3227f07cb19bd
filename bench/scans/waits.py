"""How long threads of the study wait for a processor: what the machine, and not the model, adds to its times."""

import contextlib
import os
import pathlib
import threading

from common import tree


def run_delays(pid):
    """Seconds that each living thread of a process and its descendants has waited on a run queue, by (process, thread)."""
    found = {}
    for process in tree(pid):
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{process}/task"):
                with contextlib.suppress(OSError, IndexError):
                    # On a processor, waiting for one, and how often: nanoseconds (sched-stats.rst of the kernel).
                    found[process, task] = int(pathlib.Path(f"/proc/{process}/task/{task}/schedstat").read_text().split()[1]) / 1e9
    return found


class Waits(threading.Thread):
    """Sums the waits of all threads between its start and its stop. It reads them every few seconds, as threads that end take theirs along."""

    EVERY_S = 5

    def __init__(self):
        super().__init__(daemon=True)
        self.ended, self.first, self.last = threading.Event(), run_delays(os.getpid()), {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()
        self.last |= run_delays(os.getpid())

    def run(self):
        while not self.ended.wait(self.EVERY_S):
            self.last |= run_delays(os.getpid())

    @property
    def seconds(self):
        return sum(waited - self.first.get(key, 0.0) for key, waited in self.last.items())
