//! Plans and runs questions over a snapshot, with deadlines and cancellation.
