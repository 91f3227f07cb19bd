//! The aggregate tree: build, prune, merge and aggregate over columns.
