//! Rules for reading positions and shapes, and the notes on the current event.

use crate::options::{ReadOptions, Unknown};
use geo_types::{Coord, LineString, Polygon};
use meridian_model::{BatchBuilder, Crs, IdRole, Invalid, mend};

/// Max distance in degrees beyond the edge of the world at which a coordinate is taken as the edge.
///
/// This is the rounding noise of reprojection (0.1 mm), which occurs in real files (`180.00000000000006`).
const EDGE: f64 = 1e-9;

/// Returns a position without rounding noise at the edges of the world.
#[inline]
pub(crate) fn coord(lon: f64, lat: f64) -> Coord<f64> {
    let snap = |value: f64, edge: f64| {
        if value.abs() > edge && value.abs() <= edge + EDGE { edge.copysign(value) } else { value }
    };
    Coord { x: snap(lon, 180.0), y: snap(lat, 90.0) }
}

/// Omissions and changes of one event, as bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct EventNotes(u8);

impl EventNotes {
    /// Heights or measures were dropped.
    pub(crate) const HEIGHTS: EventNotes = EventNotes(1);
    /// The id was dropped.
    pub(crate) const ID: EventNotes = EventNotes(2);
    const CLOSED: EventNotes = EventNotes(4);
    const RING: EventNotes = EventNotes(8);
    const PART: EventNotes = EventNotes(16);
    const UNTANGLED: EventNotes = EventNotes(32);

    pub(crate) fn has(self, one: EventNotes) -> bool {
        self.0 & one.0 != 0
    }

    fn add(&mut self, one: EventNotes) {
        self.0 |= one.0;
    }

    /// Returns a description of the repairs; `None` if there are none.
    pub(crate) fn mended(self) -> Option<String> {
        let words = [
            (EventNotes::CLOSED, "a ring was closed"),
            (EventNotes::RING, "a ring that encloses nothing was left out"),
            (EventNotes::PART, "a polygon that encloses nothing was left out"),
            (EventNotes::UNTANGLED, "rings that cross were cut where they meet"),
        ];
        let said: Vec<&str> = words.iter().filter(|(one, _)| self.has(*one)).map(|(_, words)| *words).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

/// The rules for positions and shapes of one input, and the notes on its current event.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Survey {
    crs: Crs,
    drop_heights: bool,
    drop_ids: bool,
    mend: bool,
    noted: EventNotes,
}

impl Survey {
    pub(crate) fn new(options: &ReadOptions) -> Survey {
        Survey {
            crs: options.crs,
            drop_heights: options.heights == Unknown::Ignore,
            drop_ids: options.ids == Unknown::Ignore,
            mend: options.mend,
            noted: EventNotes::default(),
        }
    }

    /// Creates a survey for samples, in which only the types of shapes matter: the reader reports heights, with their
    /// lines.
    pub(crate) fn for_kinds(options: &ReadOptions) -> Survey {
        Survey { drop_heights: true, ..Survey::new(options) }
    }

    /// Returns the notes on the current event, and begins the next.
    pub(crate) fn take(&mut self) -> EventNotes {
        std::mem::take(&mut self.noted)
    }

    /// Returns the reference system of the positions.
    pub(crate) fn crs(&self) -> Crs {
        self.crs
    }

    /// Sets the id of the current event, unless the id cannot be kept and is to be dropped.
    pub(crate) fn id(&mut self, id: impl Into<String>, builder: &mut BatchBuilder) -> Result<(), Invalid> {
        match builder.schema().id {
            IdRole::Given => builder.set_id(id),
            IdRole::Made if self.drop_ids => {
                self.noted.add(EventNotes::ID);
                Ok(())
            }
            IdRole::Made => Err(Invalid::not_kept(
                &builder.schema().id_name,
                "this collection makes its own ids, so this one would be lost: leave it out, or make the collection with \
                 given ids (a property of its schema with \"x-ogc-role\": \"id\")",
            )),
        }
    }

    /// Drops an id besides the kept one, if ids are to be dropped.
    pub(crate) fn id_beside(&mut self) -> Result<(), Invalid> {
        if self.drop_ids {
            self.noted.add(EventNotes::ID);
            return Ok(());
        }
        Err(Invalid::not_kept(
            "id",
            "the id is that of a property, so this one would be lost: a text field feature_id keeps it",
        ))
    }

    /// Returns a position as written, in degrees.
    #[inline]
    pub(crate) fn position(&self, x: f64, y: f64) -> Result<Coord<f64>, Invalid> {
        if self.crs == Crs::Crs84 { Ok(coord(x, y)) } else { self.converted(x, y) }
    }

    #[cold]
    fn converted(&self, x: f64, y: f64) -> Result<Coord<f64>, Invalid> {
        let at = self.crs.position(x, y);
        let at = coord(at.x, at.y);
        // Checked here as well, because only here is the written order of the axes known.
        if self.crs == Crs::Epsg4326 && !(-90.0..=90.0).contains(&at.y) {
            let detail = format!("latitude {x} is outside -90..90: EPSG:4326 has the latitude first");
            return Err(Invalid::new(detail));
        }
        Ok(at)
    }

    /// Records that a position has more than two numbers, which are lost; refused unless the options allow it.
    #[inline]
    pub(crate) fn height(&mut self) -> Result<(), Invalid> {
        if !self.drop_heights {
            return Err(height_refused());
        }
        self.noted.add(EventNotes::HEIGHTS);
        Ok(())
    }

    /// Builds a polygon from rings as they were written.
    pub(crate) fn polygon(&mut self, mut rings: Vec<Vec<Coord<f64>>>) -> Result<Polygon<f64>, Invalid> {
        if self.mend {
            self.mend_rings(&mut rings)?;
        }
        // After the repair, which may have closed or removed some of them.
        rings.iter().try_for_each(|ring| check_ring(ring))?;
        let mut rings = rings.into_iter().map(LineString::new);
        let outer = rings.next().ok_or_else(|| Invalid::new("a polygon without rings"))?;
        Ok(Polygon::new(outer, rings.collect()))
    }

    /// Like [`Survey::polygon`], for one polygon among several, which may be left out if that repairs the whole.
    pub(crate) fn part(&mut self, rings: Vec<Vec<Coord<f64>>>) -> Result<Option<Polygon<f64>>, Invalid> {
        match self.polygon(rings) {
            // Only in a multipolygon: without the part the rest is still a geometry, whereas a polygon would be gone.
            Err(_) if self.mend => {
                self.noted.add(EventNotes::PART);
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    fn mend_rings(&mut self, rings: &mut Vec<Vec<Coord<f64>>>) -> Result<(), Invalid> {
        let mut kept = Vec::with_capacity(rings.len());
        for (i, mut ring) in std::mem::take(rings).into_iter().enumerate() {
            let mended = mend::ring(&mut ring);
            if mended.degenerate && i == 0 {
                return Err(Invalid::new("the exterior ring encloses nothing: fewer than three different positions"));
            } else if mended.degenerate {
                self.noted.add(EventNotes::RING);
                continue;
            }
            if mended.closed {
                self.noted.add(EventNotes::CLOSED);
            }
            kept.push(ring);
        }
        *rings = kept;
        Ok(())
    }

    /// Returns whether shapes are repaired.
    pub(crate) fn mends(&self) -> bool {
        self.mend
    }

    /// Records that the rings of the shape were cut where they meet.
    pub(crate) fn untangled(&mut self) {
        self.noted.add(EventNotes::UNTANGLED);
    }
}

#[cold]
fn height_refused() -> Invalid {
    let detail = "the position has a height or a measure, which is not kept: send longitude and latitude, and the height \
                  as a property";
    Invalid { not_kept: true, ..Invalid::new(detail) }
}

/// Checks a ring as written; building a polygon from it would close it silently.
fn check_ring(ring: &[Coord<f64>]) -> Result<(), Invalid> {
    let (Some(first), Some(last)) = (ring.first(), ring.last()) else {
        return Err(Invalid::new("a ring of a polygon has no positions"));
    };
    if first != last {
        return Err(Invalid::new(format!(
            "a ring of a polygon is not closed: it begins at [{}, {}] and ends at [{}, {}]",
            first.x, first.y, last.x, last.y
        )));
    }
    if ring.len() < 4 {
        return Err(Invalid::new(format!("a ring of {} positions: expected at least 4", ring.len())));
    }
    Ok(())
}
