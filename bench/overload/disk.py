"""How long a sync of a log waits while a large file is written beside it: synced at its end, or every 8 MiB as segments are.

    python3 bench/overload/disk.py [FOLDER]
"""

import os
import pathlib
import sys
import tempfile
import threading
import time

MIB, FILE_MIB, ROUNDS = 1 << 20, 400, 3
GROUP_BYTES, PAUSE_S = 50_000, 0.005


def append(path, stop, waits):
    """Groups of a log, each synced."""
    log, group = os.open(path, os.O_CREAT | os.O_WRONLY), os.urandom(GROUP_BYTES)
    while not stop.is_set():
        begun = time.monotonic()
        os.write(log, group)
        os.fdatasync(log)
        waits.append(time.monotonic() - begun)
        time.sleep(PAUSE_S)
    os.close(log)


def run(folder, every):
    """The waits of the log, sorted, and how long the file took."""
    stop, waits = threading.Event(), []
    writer = threading.Thread(target=append, args=(folder / "log", stop, waits))
    writer.start()
    time.sleep(1)
    begun, piece = time.monotonic(), os.urandom(MIB)
    file = os.open(folder / "segment", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    for written in range(1, FILE_MIB + 1):
        os.write(file, piece)
        time.sleep(0.003)
        if every and written % every == 0:
            os.fdatasync(file)
    os.fdatasync(file)
    took = time.monotonic() - begun
    os.close(file)
    stop.set()
    writer.join()
    return sorted(waits), took


def main():
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else ".") as folder:
        for _ in range(ROUNDS):
            for every in (0, 8):
                waits, took = run(pathlib.Path(folder), every)
                middle, late, longest = (1e3 * waits[min(int(len(waits) * q), len(waits) - 1)] for q in (0.5, 0.99, 1))
                how = f"every {every} MiB" if every else "at its end"
                print(f"synced {how}: log p50 {middle:.1f} p99 {late:.1f} max {longest:.0f} ms, file {took:.2f} s", flush=True)


if __name__ == "__main__":
    main()
