//! Readers and writers of event files: bytes in, batches out, and back.
