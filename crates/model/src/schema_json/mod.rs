//! Schemas as JSON Schema, in the form of OGC API – Features Part 5, which the server serves and accepts.
//!
//! Roles are in `x-ogc-role` (`id`, `primary-geometry`, `primary-instant`, `primary-interval-start`,
//! `primary-interval-end`), geometries in `format` (`geometry-point` and so on), and Meridian's own properties in
//! `x-meridian-*`. A keyword that would restrict or change events in a way that a [`Schema`] cannot represent is
//! rejected with its JSON Pointer, never dropped. Annotations are ignored.

mod duration;
mod read;
mod write;

pub use duration::{duration_text, parse_duration};
pub use read::{MEMBERS, from_json};
pub use write::{queryables, to_json};

use crate::schema::{GeometryType, Schema};

/// The `format` of each kind of geometry, by its name in Part 5; the first entry of a kind is used for output.
const GEOMETRY_FORMATS: [(&str, GeometryType); 10] = [
    ("geometry-point", GeometryType::Point),
    ("geometry-linestring", GeometryType::Line),
    ("geometry-polygon", GeometryType::Polygon),
    ("geometry-point-or-multipoint", GeometryType::MultiPoint),
    ("geometry-linestring-or-multilinestring", GeometryType::MultiLine),
    ("geometry-polygon-or-multipolygon", GeometryType::MultiPolygon),
    ("geometry-any", GeometryType::Any),
    ("geometry-multipoint", GeometryType::MultiPoint),
    ("geometry-multilinestring", GeometryType::MultiLine),
    ("geometry-multipolygon", GeometryType::MultiPolygon),
];

/// The `format` that names this kind of geometry in a schema document.
pub fn geometry_format(kind: GeometryType) -> &'static str {
    GEOMETRY_FORMATS.iter().find(|(_, k)| *k == kind).map_or("geometry-any", |(name, _)| name)
}

/// Whether two schemas of a collection are equivalent: a missing title defaults to the collection's name.
pub fn same(a: &Schema, b: &Schema, name: &str) -> bool {
    // A schema that was read back has the collection's name as its title; the original may have had none.
    let titled = |schema: &Schema| {
        let title = schema.title.clone().unwrap_or_else(|| name.to_owned());
        Schema { title: Some(title), ..schema.clone() }
    };
    titled(a) == titled(b)
}

#[cfg(test)]
pub(crate) mod tests;
