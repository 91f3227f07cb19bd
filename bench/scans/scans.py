"""Scans of a row, and the events that they read: an event stands for a batch, and says how many entries that has."""

import json
import math
import random

# Distinct scans of a row, from which clients draw.
SCANS = 1_000
SCHEMA = "scan:Integer,batch:Integer,read:Integer,returned:Integer,*geom:Point:srid=4326"
# Each scan has a point of its own, so that a box finds its events and reads little else.
COLUMNS, STEP = 300, 1.0


def draw(sizes, rng):
    """A size of this mean, spread and range: a beta distribution by the method of moments, as the simulator draws it."""
    width = sizes["max"] - sizes["min"]
    m, v = (sizes["mean"] - sizes["min"]) / width, (sizes["sd"] / width) ** 2
    n = m * (1 - m) / v - 1
    return sizes["min"] + width * rng.betavariate(m * n, (1 - m) * n)


def place(scan):
    """Longitude and latitude of a scan."""
    row, column = divmod(scan, COLUMNS)
    return column * STEP - 150, row * STEP - 60


def pieces(read, tablets, tablet_entries, rng):
    """What a scan of `read` entries reads of each tablet that it crosses, in their order."""
    at = rng.uniform(0, max(tablets * tablet_entries - read, 0))
    found = []
    while read > 0 and at < tablets * tablet_entries:
        tablet = int(at // tablet_entries)
        part = min(read, (tablet + 1) * tablet_entries - at)
        found.append((tablet, part))
        at, read = (tablet + 1) * tablet_entries, read - part
    return found or [(0, 0)]


def batches(read, returned_share, batch_entries):
    """Entries read and returned by each batch of a piece."""
    count = max(math.ceil(read * returned_share / batch_entries), 1)
    return [(round(read / count), round(read * returned_share / count))] * count


class Scans:
    """The scans of a row: `tablets` of each, and the `events` of each tablet as lines of GeoJSON."""

    def __init__(self, row, scenario, count=SCANS, seed=1):
        rng, work, machine = random.Random(seed), row.workload, scenario["machine"]
        number = row.of("tablets")
        further = 1 + work.get("growth_per_tablet", 0) * (number - 1)
        self.tablets, self.events = [], [[] for _ in range(number)]
        for scan in range(count):
            read = draw(work["entries"], rng) * further
            crossed = pieces(read, number, machine["tablet_entries"], rng)
            self.tablets.append([tablet for tablet, _ in crossed])
            for tablet, part in crossed:
                for batch, (read, returned) in enumerate(batches(part, work["returned"], machine["batch_entries"])):
                    properties = {"scan": scan, "batch": batch, "read": read, "returned": returned}
                    self.events[tablet].append(json.dumps({"type": "Feature", "geometry": {"type": "Point", "coordinates": place(scan)}, "properties": properties}))

    @staticmethod
    def target(scan, tablet, eventual):
        """The request that reads a scan's events of a tablet."""
        lon, lat = place(scan)
        box = f"{lon - STEP / 4},{lat - STEP / 4},{lon + STEP / 4},{lat + STEP / 4}"
        return f"/collections/tablet-{tablet}/items?f=json&limit=1000&bbox={box}" + ("&consistency=eventual" if eventual else "")
