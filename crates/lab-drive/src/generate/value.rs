//! Values of placeholders.

use std::sync::Arc;

/// A value of a placeholder.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number and its count of decimals.
    Number(f64, u8),
    /// An integer.
    Whole(u64),
    /// A text.
    Text(Arc<str>),
}

impl Value {
    pub(super) fn text(text: impl Into<Arc<str>>) -> Value {
        Value::Text(text.into())
    }
}
