//! The pages built by `web/`, and the files that they load.

#[cfg(any(test, not(feature = "map")))]
pub mod absent;
pub mod base_map;
#[cfg(feature = "map")]
pub mod embedded;
pub mod icon;
mod unbuilt;

#[cfg(not(feature = "map"))]
pub use absent as embedded;
