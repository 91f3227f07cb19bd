//! The geometry columns of a batch, and the `bbox` test on them.

use super::outcomes::Outcomes;
use super::region::Region;
use super::truth::Truth;
use crate::batch::Batch;
use crate::layout::GeometryColumns;
use crate::planar::{Sides, box_in_box, boxes_touch, geometry_touches_box};
use arrow_array::Array;
use arrow_buffer::{BooleanBuffer, NullBuffer};

/// The locations of a batch's rows.
pub(crate) enum Places<'a> {
    /// The collection has no geometry (or it was not read).
    None,
    /// Points in degrees.
    Points { lon: &'a [f64], lat: &'a [f64], nulls: Option<NullBuffer> },
    /// The boxes of shapes; the shapes themselves come from [`Batch::geometry`].
    Shapes { sides: SideColumns<'a>, nulls: Option<NullBuffer> },
}

/// West, south, east and north, as columns.
pub(crate) struct SideColumns<'a>([&'a [f64]; 4]);

impl SideColumns<'_> {
    #[inline]
    pub(crate) fn row(&self, row: usize) -> Sides {
        [self.0[0][row], self.0[1][row], self.0[2][row], self.0[3][row]]
    }
}

impl<'a> Places<'a> {
    pub(crate) fn of(batch: &'a Batch) -> Places<'a> {
        match batch.layout().geometry {
            None => Places::None,
            Some(GeometryColumns::Points { .. }) => match batch.points() {
                Some((lon, lat)) => {
                    Places::Points { lon: lon.values(), lat: lat.values(), nulls: lon.nulls().cloned() }
                }
                None => not_read(),
            },
            Some(GeometryColumns::Shapes { .. }) => match batch.sides() {
                Some(sides) => Places::Shapes {
                    sides: SideColumns(sides.map(|s| &s.values()[..])),
                    nulls: sides[0].nulls().cloned(),
                },
                None => not_read(),
            },
        }
    }

    /// Whether a row has no geometry.
    pub(crate) fn is_null(&self, rows: usize) -> Truth {
        match self {
            Places::None => Truth::constant(true, rows),
            Places::Points { nulls, .. } | Places::Shapes { nulls, .. } => null_rows(nulls.as_ref(), rows),
        }
    }

    /// True (or false) for every row that has a geometry.
    pub(crate) fn constant(&self, value: bool, rows: usize) -> Truth {
        match self {
            Places::None => Truth::unknown(rows),
            Places::Points { nulls, .. } | Places::Shapes { nulls, .. } => {
                Truth::test_all(rows, nulls.as_ref(), |_| value)
            }
        }
    }
}

/// Whether a row's geometry is null; never unknown.
pub(crate) fn null_rows(nulls: Option<&NullBuffer>, rows: usize) -> Truth {
    match nulls {
        Some(nulls) => Truth::of(!nulls.inner(), None),
        None => Truth::constant(false, rows),
    }
}

fn not_read<'a>() -> Places<'a> {
    debug_assert!(false, "the geometry was not read: see Predicate::add_columns");
    Places::None
}

/// `bbox`: events whose geometry shares a point with one of the boxes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BoxTest {
    boxes: Vec<Sides>,
}

impl BoxTest {
    /// A box with `west > east` crosses the antimeridian: it becomes two boxes that each end there.
    pub(crate) fn new([west, south, east, north]: Sides) -> BoxTest {
        let boxes = if west > east {
            vec![[west, south, 180.0, north], [-180.0, south, east, north]]
        } else {
            vec![[west, south, east, north]]
        };
        BoxTest { boxes }
    }

    /// The boxes, none of which crosses the antimeridian.
    pub(crate) fn boxes(&self) -> &[Sides] {
        &self.boxes
    }

    /// The smallest box that contains all boxes.
    pub(crate) fn sides(&self) -> Sides {
        self.boxes.iter().fold(
            [f64::INFINITY, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY],
            |[west, south, east, north], [w, s, e, n]| [west.min(*w), south.min(*s), east.max(*e), north.max(*n)],
        )
    }

    pub(crate) fn evaluate(&self, batch: &Batch, open: Option<&BooleanBuffer>) -> Truth {
        let rows = batch.rows();
        match Places::of(batch) {
            Places::None => Truth::unknown(rows),
            Places::Points { lon, lat, nulls } => {
                let mut yes: Option<BooleanBuffer> = None;
                for [w, s, e, n] in &self.boxes {
                    // `&` and not `&&`: four branchless comparisons are faster than one with a branch.
                    let part = BooleanBuffer::collect_bool(rows, |i| {
                        (lon[i] >= *w) & (lon[i] <= *e) & (lat[i] >= *s) & (lat[i] <= *n)
                    });
                    yes = Some(yes.map_or_else(|| part.clone(), |y| &y | &part));
                }
                Truth::of(yes.unwrap_or_else(|| BooleanBuffer::new_unset(rows)), nulls.as_ref())
            }
            Places::Shapes { sides, nulls } => Truth::test_open(rows, open, nulls.as_ref(), |i| {
                let row = sides.row(i);
                if self.boxes.iter().any(|b| box_in_box(b, &row)) {
                    return true;
                }
                if !self.boxes.iter().any(|b| boxes_touch(b, &row)) {
                    return false;
                }
                batch.geometry(i).is_some_and(|g| self.boxes.iter().any(|b| geometry_touches_box(&g, b)))
            }),
        }
    }

    pub(crate) fn outcomes(&self, region: &dyn Region) -> Outcomes {
        let bounds = region.bounds();
        if bounds.is_nowhere() {
            return Outcomes::UNKNOWN;
        }
        let sides = [bounds.west, bounds.south, bounds.east, bounds.north];
        let touches = self.boxes.iter().any(|b| boxes_touch(b, &sides));
        let within = self.boxes.iter().any(|b| box_in_box(b, &sides));
        Outcomes::of(touches, !within).with_unknown(region.some_nowhere())
    }
}
