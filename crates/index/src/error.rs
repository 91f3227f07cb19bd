//! Index errors.

/// Why a tree or pyramid could not be built or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The bytes do not have this version's format: damaged, truncated, or of another version.
    #[error("damaged {what}: {detail}")]
    Damaged {
        /// The structure being read.
        what: &'static str,
        /// The value found and the one expected.
        detail: String,
    },
    /// The rows violate the builder's contract: a bug in the caller.
    #[error("rows unfit for this index: {0}")]
    Unfit(String),
    /// More rows than one forest can number.
    #[error("more than {} rows in one forest", u32::MAX)]
    TooManyRows,
}
