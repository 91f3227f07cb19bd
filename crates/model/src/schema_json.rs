//! Schemas from and to JSON Schema.
