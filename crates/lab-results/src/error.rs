//! How the lab fails: a sentence, of three kinds that a user answers differently.

/// Why the lab could not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabError {
    /// The scenario (or an option) asks for something impossible: correct it.
    #[error("{0}")]
    Scenario(String),
    /// A target cannot be reached or may not be asked: start it, or allow it.
    #[error("{0}")]
    Target(String),
    /// Results cannot be written or read: check the disk or the folder.
    #[error("{0}")]
    Results(String),
}

impl LabError {
    /// A mistake in a scenario or an option.
    pub fn scenario(text: impl Into<String>) -> Self {
        LabError::Scenario(text.into())
    }

    /// A target that fails.
    pub fn target(text: impl Into<String>) -> Self {
        LabError::Target(text.into())
    }

    /// Results that fail.
    pub fn results(text: impl Into<String>) -> Self {
        LabError::Results(text.into())
    }
}

/// The result of most functions of the lab.
pub type Result<T, E = LabError> = std::result::Result<T, E>;
