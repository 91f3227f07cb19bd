"""CQL2 filters made at random, written as text or JSON, and what they say of an event: True, False or None, unknown."""

from model import DAY, FIELDS, NEW_YEAR, OPEN_END, OPEN_START, TEXTS, instant

COMPARE = {
    "=": lambda c: c == 0, "<>": lambda c: c != 0, "<": lambda c: c < 0, "<=": lambda c: c <= 0, ">": lambda c: c > 0,
    ">=": lambda c: c >= 0,
}
TEMPORAL = {
    "T_AFTER": lambda a, b: a[0] > b[1],
    "T_BEFORE": lambda a, b: a[1] < b[0],
    "T_CONTAINS": lambda a, b: a[0] < b[0] and a[1] > b[1],
    "T_DISJOINT": lambda a, b: a[0] > b[1] or a[1] < b[0],
    "T_DURING": lambda a, b: a[0] > b[0] and a[1] < b[1],
    "T_EQUALS": lambda a, b: a == b,
    "T_FINISHES": lambda a, b: a[0] > b[0] and a[1] == b[1],
    "T_INTERSECTS": lambda a, b: a[0] <= b[1] and a[1] >= b[0],
    "T_MEETS": lambda a, b: a[1] == b[0],
    "T_OVERLAPS": lambda a, b: a[0] < b[0] < a[1] < b[1],
    "T_STARTS": lambda a, b: a[0] == b[0] and a[1] < b[1],
}
ARRAY = {
    "A_CONTAINS": lambda a, b: a >= b, "A_CONTAINEDBY": lambda a, b: a <= b, "A_EQUALS": lambda a, b: a == b,
    "A_OVERLAPS": lambda a, b: bool(a & b),
}


def make(rng, world, depth=2):
    """A filter as nested tuples."""
    if depth and rng.random() < 0.45:
        word = rng.choice(["and", "or", "not"])
        if word == "not":
            return ("not", make(rng, world, depth - 1))
        return (word, *[make(rng, world, depth - 1) for _ in range(rng.randint(2, 3))])
    kinds = ["number", "number", "text", "bool", "time", "like", "in", "between", "null", "list", "id", "casei"]
    kinds += ["interval", "interval"] if world.time == "interval" else []
    kinds += ["place", "place"] if world.geometry else []
    return condition(rng, world, rng.choice(kinds))


def condition(rng, world, kind):
    compare = lambda a, b: ("compare", rng.choice(list(COMPARE)), a, b)
    number = lambda: rng.choice([("field", "n"), ("field", "x"), ("value", rng.randint(-3, 3)), ("value", 0.5)])
    text = lambda: ("value", rng.choice(TEXTS))
    boolean = lambda: rng.choice([("field", "flag"), ("value", True), ("value", False)])
    moment = lambda: rng.choice([("instant", world.moment()), ("day", NEW_YEAR + rng.randint(-3, 5) * DAY)])
    time_fields = ["seen"] + {"instant": ["at"], "interval": ["start", "end"]}.get(world.time, [])
    time_field = lambda: ("field", rng.choice(time_fields))
    some_id = lambda: rng.choice(world.events)["id"] if world.events and rng.random() < 0.9 else "nobody"
    if kind == "number":
        return compare(("field", rng.choice("nx")), number())
    if kind == "text":
        return compare(("field", "name"), text())
    if kind == "bool":
        return compare(("field", "flag"), boolean())
    if kind == "time":
        return compare(time_field(), moment())
    if kind == "like":
        return ("like", ("field", "name"), rng.choice(["%", "a%", "_", "%b", "a\\_b", "%\\%", "_b%", ""]))
    if kind == "in":
        return rng.choice([
            ("in", ("field", "n"), [("value", rng.randint(-3, 3)) for _ in range(3)]),
            ("in", ("field", "name"), [text() for _ in range(2)]),
            ("in", ("field", "flag"), [boolean()]),
        ])
    if kind == "between":
        return rng.choice([
            ("between", ("field", "x"), ("value", rng.randint(-3, 1)), ("value", rng.randint(-1, 3))),
            ("between", ("field", "flag"), ("value", False), boolean()),
            ("between", time_field(), moment(), moment()),
        ])
    if kind == "null":
        return ("null", ("field", rng.choice(list(FIELDS))))
    if kind == "list":
        return ("array", rng.choice(list(ARRAY)), "tags", [rng.choice("abc") for _ in range(rng.randint(0, 2))])
    if kind == "id":
        return rng.choice([
            compare(("field", "id"), ("value", some_id())), ("in", ("field", "id"), [("value", some_id()) for _ in range(3)]),
            ("like", ("field", "id"), rng.choice(["%1", "e_", "0%"])),
        ])
    if kind == "casei":
        return ("casei", "name", rng.choice(TEXTS))
    if kind == "interval":
        ends = rng.choice([("start", "end"), ("start", "end"), ("start", ".."), ("..", "end")])
        first, last = sorted([world.moment(), world.moment()])
        return ("temporal", rng.choice(list(TEMPORAL)), ends, rng.choice([(first, last), (first, None), (None, last)]))
    (x, y), w, h = world.position(), rng.randint(0, 12) / 2, rng.randint(0, 12) / 2
    return ("place", rng.choice([True, True, False]), [x, y, x + w, y + h])


def operand(term):
    kind, value = term
    if kind == "field":
        return f'"{value}"', {"property": value}
    if kind == "instant":
        return f"TIMESTAMP('{instant(value)}')", {"timestamp": instant(value)}
    if kind == "day":
        return f"DATE('{instant(value)[:10]}')", {"date": instant(value)[:10]}
    if isinstance(value, bool):
        return str(value).upper(), value
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'", value
    return repr(value), value


def write(expr):
    """The filter as CQL2 text and as CQL2 JSON."""
    word, *args = expr
    if word in ("and", "or"):
        parts = [write(part) for part in args]
        return "(" + f" {word.upper()} ".join(t for t, _ in parts) + ")", {"op": word, "args": [j for _, j in parts]}
    if word == "not":
        text, json = write(args[0])
        return f"NOT ({text})", {"op": "not", "args": [json]}
    if word == "compare":
        op, (a, ja), (b, jb) = args[0], operand(args[1]), operand(args[2])
        return f"{a} {op} {b}", {"op": op, "args": [ja, jb]}
    if word == "like":
        (a, ja), (b, jb) = operand(args[0]), operand(("value", args[1]))
        return f"{a} LIKE {b}", {"op": "like", "args": [ja, jb]}
    if word == "in":
        (a, ja), items = operand(args[0]), [operand(item) for item in args[1]]
        return f"{a} IN ({', '.join(t for t, _ in items)})", {"op": "in", "args": [ja, [j for _, j in items]]}
    if word == "between":
        (a, ja), (b, jb), (c, jc) = map(operand, args)
        return f"{a} BETWEEN {b} AND {c}", {"op": "between", "args": [ja, jb, jc]}
    if word == "null":
        a, ja = operand(args[0])
        return f"{a} IS NULL", {"op": "isNull", "args": [ja]}
    if word == "array":
        op, name, items = args
        name_json = {"A_CONTAINS": "a_contains", "A_CONTAINEDBY": "a_containedBy", "A_EQUALS": "a_equals", "A_OVERLAPS": "a_overlaps"}
        quoted = ", ".join(f"'{item}'" for item in items)
        return f'{op}("{name}", ({quoted}))', {"op": name_json[op], "args": [{"property": name}, items]}
    if word == "casei":
        (a, ja), (b, jb) = operand(("field", args[0])), operand(("value", args[1]))
        fold = lambda j: {"op": "casei", "args": [j]}
        return f"CASEI({a}) = CASEI({b})", {"op": "=", "args": [fold(ja), fold(jb)]}
    if word == "temporal":
        op, ends, (first, last) = args
        mine = ", ".join("'..'" if end == ".." else f'"{end}"' for end in ends)
        literal = [".." if t is None else instant(t) for t in (first, last)]
        json = {"interval": [end if end == ".." else {"property": end} for end in ends]}
        theirs = ", ".join(f"'{t}'" for t in literal)
        return f"{op}(INTERVAL({mine}), INTERVAL({theirs}))", {"op": op.lower(), "args": [json, {"interval": literal}]}
    touches, (w, s, e, n) = args
    op = "S_INTERSECTS" if touches else "S_DISJOINT"
    return f'{op}("geometry", BBOX({w}, {s}, {e}, {n}))', {"op": op.lower(), "args": [{"property": "geometry"}, {"bbox": [w, s, e, n]}]}


def value_of(term, event):
    """A value to compare, times as first and last instant; None where it is null."""
    kind, value = term
    if kind == "field" and value == "id":
        return event["id"]
    if kind == "field":
        found = event["properties"].get(value)
        is_time = FIELDS.get(value) == "time" or value in ("at", "start", "end")
        return (found, found) if is_time and found is not None else found
    if kind == "instant":
        return (value, value)
    return (value, value + DAY - 1) if kind == "day" else value


def order(a, b):
    if isinstance(a, tuple):
        return -1 if a[1] < b[0] else 1 if a[0] > b[1] else 0
    return (a > b) - (a < b)


def like(text, pattern):
    if not pattern:
        return not text
    if pattern[0] == "%":
        return any(like(text[i:], pattern[1:]) for i in range(len(text) + 1))
    if pattern[0] == "_":
        return bool(text) and like(text[1:], pattern[1:])
    if pattern[0] == "\\" and len(pattern) > 1:
        pattern = pattern[1:]
    return text[:1] == pattern[0] and like(text[1:], pattern[1:])


def says(expr, event):
    """Logic with three values."""
    word, *args = expr
    if word == "and":
        values = [says(part, event) for part in args]
        return False if False in values else None if None in values else True
    if word == "or":
        values = [says(part, event) for part in args]
        return True if True in values else None if None in values else False
    if word == "not":
        value = says(args[0], event)
        return None if value is None else not value
    if word == "compare":
        a, b = value_of(args[1], event), value_of(args[2], event)
        return None if a is None or b is None else COMPARE[args[0]](order(a, b))
    if word == "like":
        a = value_of(args[0], event)
        return None if a is None else like(a, args[1])
    if word == "in":
        return says(("or", *[("compare", "=", args[0], item) for item in args[1]]), event)
    if word == "between":
        return says(("and", ("compare", ">=", args[0], args[1]), ("compare", "<=", args[0], args[2])), event)
    if word == "null":
        return value_of(args[0], event) is None
    if word == "array":
        found = event["properties"]["tags"]
        return None if found is None else ARRAY[args[0]](set(found), set(args[2]))
    if word == "casei":
        found = event["properties"][args[0]]
        return None if found is None else found.casefold() == args[1].casefold()
    if word == "temporal":
        op, ends, (first, last) = args
        known = [None if end == ".." else event["properties"][end] for end in ends]
        if known == [None, None]:
            return None
        mine = (OPEN_START if known[0] is None else known[0], OPEN_END if known[1] is None else known[1])
        theirs = (OPEN_START if first is None else first, OPEN_END if last is None else last)
        return TEMPORAL[op](mine, theirs)
    touches, box = args
    if event["geometry"] is None:
        return None
    return meets(event["geometry"], box) == touches


def meets(geometry, box):
    """Whether a shape shares a point with a box, edges included. Polygons here are boxes themselves."""
    west, south, east, north = box
    kind, at = geometry["type"], geometry["coordinates"]
    if kind == "Point":
        return west <= at[0] <= east and south <= at[1] <= north
    if kind == "Polygon":
        xs, ys = [p[0] for p in at[0]], [p[1] for p in at[0]]
        return min(xs) <= east and west <= max(xs) and min(ys) <= north and south <= max(ys)
    # A segment, cut by each side in turn (Liang and Barsky); exact, for all are halves.
    (x, y), (x2, y2) = at
    first, last = 0.0, 1.0
    for step, room in ((x - x2, x - west), (x2 - x, east - x), (y - y2, y - south), (y2 - y, north - y)):
        if step == 0:
            if room < 0:
                return False
        elif step < 0:
            first = max(first, room / step)
        else:
            last = min(last, room / step)
    return first <= last + 1e-12
