"""Meridian, a search server for events in space and time, from Python.

    import meridian

    db = meridian.connect("http://127.0.0.1:7117")
    quakes = db["earthquakes"]
    frame = quakes.query(bbox=(138, 34, 142, 37), filter="mag >= 5").to_pandas()

`meridian.open("folder")` in place of `connect` needs no server: the engine runs in this process.
"""

from ._arrow import Batches
from ._conditions import Conditions
from ._schema import schema_of
from .collection import Collection, Written
from .database import Database, connect, open
from .errors import (
    BrokenOff,
    CannotOpen,
    Closed,
    Conflict,
    Denied,
    Gone,
    Invalid,
    MeridianError,
    MissingData,
    MissingExtra,
    NeedsServer,
    NotFound,
    Overloaded,
    Problem,
    TooLate,
    Unreachable,
)
from .live import Event, Packets, Results, SavedSearch, Search, Stream
from .query import Density, Query

__version__ = "0.1.0"

__all__ = [
    "Batches",
    "BrokenOff",
    "CannotOpen",
    "Closed",
    "Collection",
    "Conditions",
    "Conflict",
    "Database",
    "Denied",
    "Density",
    "Event",
    "Gone",
    "Invalid",
    "MeridianError",
    "MissingData",
    "MissingExtra",
    "NeedsServer",
    "NotFound",
    "Overloaded",
    "Packets",
    "Problem",
    "Query",
    "Results",
    "SavedSearch",
    "Search",
    "Stream",
    "TooLate",
    "Unreachable",
    "Written",
    "connect",
    "open",
    "schema_of",
]
