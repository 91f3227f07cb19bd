//! How a command fails: a sentence for the user and an exit code for scripts.

use meridian_model::Invalid;
use meridian_store::{StoreError, WriteError};
use std::fmt;

/// The failure of a command. The variants are the exit codes.
#[derive(Debug)]
pub enum Failure {
    /// Exit code 1: it ran and the result is bad (an invalid line in a file, a damaged segment).
    Bad(String),
    /// Exit code 2: the command line is wrong.
    Usage(String),
    /// Exit code 3: the server, or the store in the data folder, refused or cannot be reached.
    Refused(String),
}

impl Failure {
    /// The exit code.
    pub fn code(&self) -> u8 {
        match self {
            Failure::Bad(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Refused(_) => 3,
        }
    }

    /// Returns the failure of a command that could not open a folder, and could ask a server instead.
    pub fn of_folder(error: StoreError) -> Failure {
        // Which address it listens on is not in the folder.
        let hint = "; if that is a server, give its address with --url";
        match &error {
            StoreError::InUse { .. } => Failure::Refused(format!("{error}{hint}")),
            _ => error.into(),
        }
    }

    /// Returns the failure for a mistake in this option.
    pub fn option(option: &str, mistake: &Invalid) -> Failure {
        Failure::Usage(format!("{option}: {mistake}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::Bad(text) | Failure::Usage(text) | Failure::Refused(text)) = self;
        f.write_str(text)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Invalid(mistake) => Failure::Usage(mistake.to_string()),
            StoreError::Corrupt { .. } => Failure::Bad(error.to_string()),
            other => Failure::Refused(other.to_string()),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Invalid(_) | WriteError::Conflict { .. } | WriteError::TooLarge { .. } => {
                Failure::Bad(error.to_string())
            }
            other => Failure::Refused(other.to_string()),
        }
    }
}
