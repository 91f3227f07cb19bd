//! Files for other programs, from the record batches of an Arrow response ([`crate::Format::Arrow`] as the writers
//! here produce it). These formats need a file of their own and cannot be streamed; FlatGeobuf can, without its index.
//! A server makes a GeoPackage of batches in a file without a name, and sends it then.

#[cfg(feature = "geopackage")]
mod extent;
#[cfg(feature = "flatgeobuf")]
mod flatgeobuf;
#[cfg(feature = "geopackage")]
mod geopackage;
mod pmtiles;
#[cfg(feature = "geopackage")]
mod unnamed;

#[cfg(feature = "flatgeobuf")]
pub use flatgeobuf::FlatGeobufWriter;
#[cfg(feature = "geopackage")]
pub use geopackage::GeoPackageWriter;
pub use pmtiles::{PmTilesWriter, tile_number};
#[cfg(feature = "geopackage")]
pub use unnamed::UnnamedGeoPackage;
