//! Collections: log, memory trees, segments, catalog, snapshots and recovery.
