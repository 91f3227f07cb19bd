//! Schemas as one line of text: the SimpleFeatureType spec that GeoTools and GeoMesa users know.
//!
//! `name:String,dtg:Date,*geom:Point:srid=4326;geomesa.index.dtg='dtg'` is three attributes, the third the geometry,
//! and user data after the semicolon. As in GeoMesa, the first `Date` is the event time, unless the user data name
//! another or `geomesa.ignore.dtg='true'` disables it. Names that contain a separator are in double quotes. Errors
//! give the position in characters, from 1.
//!
//! Our own options and user data express the rest: `nillable=false`, `object=true`, `title='…'`;
//! `meridian.interval.start`, `meridian.interval.end`, `meridian.id` (`given` or `made`), `meridian.id.name`,
//! `meridian.mode`, `meridian.time.unit`, `meridian.title`, `meridian.description`.

mod parser;
mod read;
mod write;

pub use read::parse;
pub use write::to_spec;

#[cfg(test)]
mod tests;
