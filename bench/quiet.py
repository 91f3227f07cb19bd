"""Whether the machine has been left to the bench: what other programs and the host took of it."""

import os
import threading
import time

from common import cpu_seconds, say

# Shares of the machine above which a part says so, and a full run does not begin.
OTHERS_MAX, STOLEN_MAX = 0.05, 0.01
BEFORE_S, WAIT_S = 5, 600


def readings():
    """Seconds so far: of all processors, busy with anything, taken by the host, and used by this bench and what it started."""
    ticks = [int(word) for word in open("/proc/stat").readline().split()[1:9]]
    hertz = os.sysconf("SC_CLK_TCK")
    # user, nice, system, idle, iowait, irq, softirq, steal
    busy = sum(ticks) - ticks[3] - ticks[4] - ticks[7]
    return {"all": sum(ticks) / hertz, "busy": busy / hertz, "stolen": ticks[7] / hertz, "own": cpu_seconds(os.getpid())}


def shares(before, after):
    """Of the machine's processors: what others used, and what the host took."""
    passed = max(after["all"] - before["all"], 1e-9)
    of = lambda key: after[key] - before[key]
    return {"others": max(0.0, of("busy") - of("own")) / passed, "stolen": of("stolen") / passed}


class Watch(threading.Thread):
    """Looks every few seconds while a part runs; `said` is what others took of the whole, and of the worst of the intervals."""

    EVERY_S = 5

    def __init__(self):
        super().__init__(daemon=True)
        self.ended, self.first, self.worst, self.said = threading.Event(), readings(), {"others": 0.0, "stolen": 0.0}, {}

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()
        whole = shares(self.first, readings())
        self.said = {**whole, "worst": self.worst, "noisy": whole["others"] > OTHERS_MAX or whole["stolen"] > STOLEN_MAX}
        if self.said["noisy"]:
            say(f"NOISY: others used {whole['others']:.1%} of the machine, the host took {whole['stolen']:.1%}: measure this part again")

    def run(self):
        last = self.first
        while not self.ended.wait(self.EVERY_S):
            now = readings()
            one, last = shares(last, now), now
            self.worst = {key: max(self.worst[key], one[key]) for key in self.worst}


def wait_until_quiet():
    """Waits until no other program uses the machine; ends the bench where that does not come."""
    until = time.time() + WAIT_S
    while True:
        before = readings()
        time.sleep(BEFORE_S)
        one = shares(before, readings())
        if one["others"] <= OTHERS_MAX and one["stolen"] <= STOLEN_MAX:
            return
        if time.time() > until:
            raise SystemExit(f"bench: the machine is not quiet: others use {one['others']:.0%} of it, the host takes {one['stolen']:.0%}; --noisy measures all the same")
        say(f"waiting: others use {one['others']:.0%} of the machine, the host takes {one['stolen']:.0%}")
