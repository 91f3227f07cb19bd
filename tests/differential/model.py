"""What a collection holds, as plain lists: schemas, events and writes made at random, and what every write leaves.

Times are microseconds since 1970. An event is a dict of `id`, `geometry` (GeoJSON or None), `properties` and `seq`, its
place in the order of writing.
"""

DAY = 86_400_000_000
NEW_YEAR = 1_767_225_600_000_000  # 2026-01-01
DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
OPEN_START, OPEN_END = -(1 << 63), (1 << 63) - 1
TEXTS = ["a", "b", "B", "ab", "a_b", "a%", "é", "É", "x y", "it's", ""]
FIELDS = {
    "name": "string", "n": "integer", "x": "number", "flag": "boolean", "seen": "time", "tags": "list", "obj": "string",
}


def instant(micros):
    """RFC 3339 in UTC, with as many decimals as it needs."""
    days, rest = divmod(micros, DAY)
    z = days + 719_468
    era, of_era = divmod(z, 146_097)
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year += era * 400 + (month <= 2)
    seconds, fraction = divmod(rest, 1_000_000)
    text = f"{year:04}-{month:02}-{day:02}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text + (f".{fraction:06}".rstrip("0") if fraction else "") + "Z"


def made_id(seq):
    return "".join(DIGITS[seq >> (5 * i) & 31] for i in reversed(range(13)))


class World:
    """One collection and its oracle."""

    def __init__(self, rng, name):
        self.rng, self.name = rng, name
        self.geometry = rng.choice(["point", "point", "any", None])
        self.time = rng.choice(["instant", "interval", "interval", None])
        self.given = rng.random() < 0.6
        self.latest = self.time is not None and rng.random() < 0.35
        self.events = []
        self.sequence = 0
        self.next_id = 0

    def schema(self):
        kinds = {"time": {"type": "string", "format": "date-time"}, "list": {"type": "array", "items": {"type": "string"}}}
        fields = {name: dict(kinds.get(kind, {"type": kind})) for name, kind in FIELDS.items()}
        fields["obj"]["x-meridian-object"] = True
        required = []
        if self.given:
            fields = {"id": {"type": "string", "x-ogc-role": "id"}, **fields}
            required.append("id")
        if self.geometry:
            fields["geometry"] = {"format": f"geometry-{self.geometry}", "x-ogc-role": "primary-geometry"}
        if self.time == "instant":
            fields["at"] = {"type": "string", "format": "date-time", "x-ogc-role": "primary-instant"}
            required.append("at")
        if self.time == "interval":
            for name, role in (("start", "primary-interval-start"), ("end", "primary-interval-end")):
                fields[name] = {"type": "string", "format": "date-time", "x-ogc-role": role}
        mode = {"x-meridian-mode": "latest"} if self.latest else {}
        return {"type": "object", "properties": fields, "required": required, **mode}

    # Events.

    def moment(self):
        """Instants on and beside the bounds of a few days, so that questions often meet their edges."""
        return NEW_YEAR + self.rng.randint(-3, 5) * DAY + self.rng.choice([0, 0, 1, -1, DAY // 2, DAY // 24])

    def position(self):
        return [self.rng.randint(-12, 12) / 2, self.rng.randint(-8, 8) / 2]

    def shape(self):
        rng, (x, y) = self.rng, self.position()
        if self.geometry == "point" or rng.random() < 0.4:
            return {"type": "Point", "coordinates": [x, y]}
        w, h = rng.randint(1, 6) / 2, rng.randint(1, 6) / 2
        if rng.random() < 0.5:
            return {"type": "LineString", "coordinates": [[x, y], [x + w, y + rng.choice([h, -h, 0])]]}
        ring = [[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]]
        return {"type": "Polygon", "coordinates": [ring]}

    def value(self, name):
        rng, kind = self.rng, FIELDS[name]
        if name == "obj":
            return rng.choice(["o1", "o2", "o3", None])
        if rng.random() < 0.2:
            return None
        if kind == "integer":
            return rng.choice([rng.randint(-3, 3), rng.randint(-3, 3), 2**53 + rng.randint(0, 2), -(2**62)])
        if kind == "number":
            return rng.choice([rng.randint(-6, 6) / 2, rng.randint(-6, 6) / 2, 1e300, 0.1, -2.5])
        if kind == "boolean":
            return rng.random() < 0.5
        if kind == "time":
            return self.moment()
        if kind == "list":
            return [rng.choice("abc") for _ in range(rng.randint(0, 3))]
        return rng.choice(TEXTS)

    def event(self):
        rng = self.rng
        properties = {name: self.value(name) for name in FIELDS}
        if self.time == "instant":
            properties["at"] = self.moment()
        if self.time == "interval":
            ends = sorted([self.moment(), self.moment()])
            properties["start"], properties["end"] = (t if rng.random() < 0.75 else None for t in ends)
        geometry = self.shape() if self.geometry and rng.random() < 0.9 else None
        event = {"id": None, "geometry": geometry, "properties": properties}
        if self.given:
            self.next_id += 1
            event["id"] = f"e{self.next_id}"
        return event

    def feature(self, event):
        """As it is sent; null fields are sometimes left out."""
        times = {name for name in event["properties"] if FIELDS.get(name) == "time" or name in ("at", "start", "end")}
        properties = {
            name: instant(value) if name in times and value is not None else value
            for name, value in event["properties"].items()
            if value is not None or self.rng.random() < 0.5
        }
        feature = {"type": "Feature", "geometry": event["geometry"], "properties": properties}
        return feature if event["id"] is None else {"id": event["id"], **feature}

    # Writes.

    def take(self, event, seq):
        """Adds an event, in place of one of the same id."""
        event["seq"] = seq
        if event["id"] is None:
            event["id"] = made_id(seq)
        self.events = [e for e in self.events if e["id"] != event["id"]] + [event]

    def remove(self, ids):
        self.events = [e for e in self.events if e["id"] not in ids]

    # What readers see.

    def times(self, event):
        """First and last instant; None where the event has no time at all."""
        properties = event["properties"]
        if self.time == "instant":
            return properties["at"], properties["at"]
        start, end = properties["start"], properties["end"]
        if start is None and end is None:
            return None
        return OPEN_START if start is None else start, OPEN_END if end is None else end

    def shown(self, history):
        """The events that a question is about: in mode `latest` the newest of each object, by the end of its time."""
        if not self.latest or history:
            return list(self.events)
        newest = {}
        for event in self.events:
            obj = event["properties"]["obj"]
            key = ("none", event["id"]) if obj is None else obj
            rank = ((self.times(event) or (0, OPEN_END))[1], event["seq"])
            if key not in newest or rank > newest[key][0]:
                newest[key] = (rank, event)
        return [event for _, event in newest.values()]
