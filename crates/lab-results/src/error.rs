//! Errors of the lab: a sentence each, in three kinds to which a user reacts differently.

/// Why the lab could not complete its task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabError {
    /// The scenario (or an option) is impossible: correct it.
    #[error("{0}")]
    Scenario(String),
    /// A target cannot be reached or is not allowed: start it, or allow it.
    #[error("{0}")]
    Target(String),
    /// Results cannot be written or read: check the disk or the folder.
    #[error("{0}")]
    Results(String),
}

impl LabError {
    /// Creates the error of a scenario or an option.
    pub fn scenario(text: impl Into<String>) -> Self {
        LabError::Scenario(text.into())
    }

    /// Creates the error of a target.
    pub fn target(text: impl Into<String>) -> Self {
        LabError::Target(text.into())
    }

    /// Creates the error of results.
    pub fn results(text: impl Into<String>) -> Self {
        LabError::Results(text.into())
    }
}

/// Result of most functions of the lab.
pub type Result<T, E = LabError> = std::result::Result<T, E>;
