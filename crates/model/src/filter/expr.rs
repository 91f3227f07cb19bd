//! The abstract syntax of a CQL2 filter (OGC 21-065r2).

use geo::MapCoordsInPlace;
use geo_types::{Coord, Geometry};
use jiff::civil;

/// A CQL2 filter, which is true, false or unknown for an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// `TRUE` or `FALSE`.
    Bool(bool),
    /// All of these.
    And(Vec<Expr>),
    /// Any of these.
    Or(Vec<Expr>),
    /// Negation; also represents `NOT LIKE`, `NOT BETWEEN`, `NOT IN` and `IS NOT NULL`.
    Not(Box<Expr>),
    /// `left op right`.
    Compare {
        /// The operator.
        op: Comparison,
        /// Left side.
        left: Operand,
        /// Right side.
        right: Operand,
    },
    /// `value LIKE pattern`.
    Like {
        /// The text tested.
        value: Operand,
        /// The pattern: `%` matches any text, `_` one character, and `\` escapes the next character.
        pattern: Operand,
    },
    /// `value BETWEEN low AND high`, both included.
    Between {
        /// The value tested.
        value: Operand,
        /// Lower bound.
        low: Operand,
        /// Upper bound.
        high: Operand,
    },
    /// `value IN (list)`.
    In {
        /// The value tested.
        value: Operand,
        /// Values to equal.
        list: Vec<Operand>,
    },
    /// `value IS NULL`.
    IsNull(Operand),
    /// A spatial function.
    Spatial {
        /// The function.
        op: SpatialOp,
        /// First argument.
        left: Operand,
        /// Second argument.
        right: Operand,
    },
    /// A temporal function.
    Temporal {
        /// The function.
        op: TemporalOp,
        /// First argument.
        left: Operand,
        /// Second argument.
        right: Operand,
    },
    /// An array function.
    Array {
        /// The function.
        op: ArrayOp,
        /// First argument.
        left: Operand,
        /// Second argument.
        right: Operand,
    },
}

/// A value in a filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A property name.
    Property(String),
    /// Text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// Any other number; finite.
    Float(f64),
    /// `TRUE` or `FALSE`.
    Bool(bool),
    /// `DATE('…')`: a day in UTC.
    Date(civil::Date),
    /// `TIMESTAMP('…')`: microseconds since 1970.
    Timestamp(i64),
    /// `INTERVAL(…, …)`.
    Interval(IntervalEnd, IntervalEnd),
    /// A geometry; heights are dropped.
    Geometry(Geometry<f64>),
    /// `BBOX(west, south, east, north)`; `west > east` crosses the antimeridian.
    Bbox([f64; 4]),
    /// A list of values.
    List(Vec<Operand>),
    /// `CASEI(…)`: case-insensitive text.
    Casei(Box<Operand>),
}

/// Start or end of an interval.
#[derive(Debug, Clone, PartialEq)]
pub enum IntervalEnd {
    /// `'..'`.
    Open,
    /// A day in UTC: its first instant as a start, its last as an end.
    Date(civil::Date),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// A property name; null is open.
    Property(String),
}

/// Implements the text and JSON names of an enum of operators.
macro_rules! operators {
    ($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident = $text:literal, $json:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$case_doc])* $case,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$case),*];

            /// The name in CQL2 text.
            pub fn text(self) -> &'static str {
                match self {
                    $($name::$case => $text,)*
                }
            }

            /// The name in CQL2 JSON.
            pub fn json(self) -> &'static str {
                match self {
                    $($name::$case => $json,)*
                }
            }

            /// The operator with this name in CQL2 text, case-insensitive.
            pub fn from_text(name: &str) -> Option<$name> {
                Self::ALL.iter().copied().find(|op| op.text().eq_ignore_ascii_case(name))
            }

            /// The operator with this name in CQL2 JSON, case-insensitive.
            pub fn from_json(name: &str) -> Option<$name> {
                Self::ALL.iter().copied().find(|op| op.json().eq_ignore_ascii_case(name))
            }
        }
    };
}

operators! {
    /// A comparison.
    Comparison {
        /// Equal.
        Eq = "=", "=";
        /// Not equal.
        Ne = "<>", "<>";
        /// Less.
        Lt = "<", "<";
        /// Less or equal.
        Le = "<=", "<=";
        /// Greater.
        Gt = ">", ">";
        /// Greater or equal.
        Ge = ">=", ">=";
    }
}

operators! {
    /// A spatial function: the relations of Simple Features, planar in degrees.
    SpatialOp {
        /// Share a point.
        Intersects = "S_INTERSECTS", "s_intersects";
        /// Are the same set of points.
        Equals = "S_EQUALS", "s_equals";
        /// Share no point.
        Disjoint = "S_DISJOINT", "s_disjoint";
        /// Share boundary points only.
        Touches = "S_TOUCHES", "s_touches";
        /// The first lies within the second.
        Within = "S_WITHIN", "s_within";
        /// Have equal dimension and share part of it, and neither contains the other.
        Overlaps = "S_OVERLAPS", "s_overlaps";
        /// Share some interior but not all, in a lower dimension.
        Crosses = "S_CROSSES", "s_crosses";
        /// The first contains the second.
        Contains = "S_CONTAINS", "s_contains";
    }
}

operators! {
    /// A temporal function: Allen's relations of intervals; an instant is an interval of no length.
    TemporalOp {
        /// The first starts after the second ends.
        After = "T_AFTER", "t_after";
        /// The first ends before the second starts.
        Before = "T_BEFORE", "t_before";
        /// The second lies strictly inside the first.
        Contains = "T_CONTAINS", "t_contains";
        /// They share no instant.
        Disjoint = "T_DISJOINT", "t_disjoint";
        /// The first lies strictly inside the second.
        During = "T_DURING", "t_during";
        /// They start and end together.
        Equals = "T_EQUALS", "t_equals";
        /// They end together; the first starts earlier.
        FinishedBy = "T_FINISHEDBY", "t_finishedBy";
        /// They end together; the first starts later.
        Finishes = "T_FINISHES", "t_finishes";
        /// They share an instant.
        Intersects = "T_INTERSECTS", "t_intersects";
        /// The first ends as the second starts.
        Meets = "T_MEETS", "t_meets";
        /// The first starts as the second ends.
        MetBy = "T_METBY", "t_metBy";
        /// The first starts inside the second and ends later.
        OverlappedBy = "T_OVERLAPPEDBY", "t_overlappedBy";
        /// The first ends inside the second and starts earlier.
        Overlaps = "T_OVERLAPS", "t_overlaps";
        /// They start together; the first ends later.
        StartedBy = "T_STARTEDBY", "t_startedBy";
        /// They start together; the first ends earlier.
        Starts = "T_STARTS", "t_starts";
    }
}

operators! {
    /// An array function; arrays are compared as sets.
    ArrayOp {
        /// The first holds all of the second.
        Contains = "A_CONTAINS", "a_contains";
        /// The second holds all of the first.
        ContainedBy = "A_CONTAINEDBY", "a_containedBy";
        /// Both hold the same.
        Equals = "A_EQUALS", "a_equals";
        /// They share a value.
        Overlaps = "A_OVERLAPS", "a_overlaps";
    }
}

impl Expr {
    /// Transforms every position of the geometries and boxes in the filter. Used to convert a `filter-crs` to
    /// longitude and latitude before binding.
    pub fn map_positions(&mut self, map: &dyn Fn(Coord<f64>) -> Coord<f64>) {
        match self {
            Expr::Bool(_) => {}
            Expr::And(parts) | Expr::Or(parts) => parts.iter_mut().for_each(|p| p.map_positions(map)),
            Expr::Not(inner) => inner.map_positions(map),
            Expr::Spatial { left, right, .. } => [left, right].into_iter().for_each(|o| o.map_positions(map)),
            Expr::IsNull(value) => value.map_positions(map),
            // Geometry has no meaning in these, and binding rejects it.
            Expr::Compare { .. }
            | Expr::Like { .. }
            | Expr::Between { .. }
            | Expr::In { .. }
            | Expr::Temporal { .. }
            | Expr::Array { .. } => {}
        }
    }
}

impl Operand {
    fn map_positions(&mut self, map: &dyn Fn(Coord<f64>) -> Coord<f64>) {
        match self {
            Operand::Geometry(geometry) => geometry.map_coords_in_place(map),
            Operand::Bbox(sides) => {
                // Corner by corner: a coordinate system that swaps the axes then swaps the sides too.
                let (low, high) = (map(Coord { x: sides[0], y: sides[1] }), map(Coord { x: sides[2], y: sides[3] }));
                *sides = [low.x, low.y, high.x, high.y];
            }
            _ => {}
        }
    }
}

impl Comparison {
    /// The equivalent operator with the sides swapped.
    pub fn flipped(self) -> Comparison {
        match self {
            Comparison::Eq => Comparison::Eq,
            Comparison::Ne => Comparison::Ne,
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
        }
    }

    /// Whether two values with this ordering satisfy the operator.
    pub fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Ne => order.is_ne(),
            Comparison::Lt => order.is_lt(),
            Comparison::Le => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::Ge => order.is_ge(),
        }
    }
}

impl SpatialOp {
    /// The equivalent function with the arguments swapped.
    pub fn flipped(self) -> SpatialOp {
        match self {
            SpatialOp::Within => SpatialOp::Contains,
            SpatialOp::Contains => SpatialOp::Within,
            same => same,
        }
    }
}
