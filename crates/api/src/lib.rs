//! The HTTP face of Meridian: OGC API, places profile, pages and metrics.
