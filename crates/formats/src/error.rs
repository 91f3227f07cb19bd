//! Errors of reading.

use meridian_model::Invalid;
use std::io;

/// Max errors collected from one input before reading stops.
pub const MISTAKES_MAX: usize = 100;

/// Why no batch was returned.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The input is invalid; each error names the line (or the ordinal of the event) and the field.
    /// Never empty, at most [`MISTAKES_MAX`] long. Nothing of the current batch was returned.
    #[error("{}", summary(.0))]
    Invalid(Vec<Invalid>),
    /// The source of the bytes failed; a retry may help.
    #[error("reading failed: {0}")]
    Io(#[source] io::Error),
    /// The input exceeds the max number of bytes (`ReadOptions::input_bytes`).
    #[error("the input is longer than {0} bytes")]
    TooLong(u64),
    /// [`crate::Watch`] cancelled the reading.
    #[error("the reading was called off")]
    Stopped,
}

/// The error passed through [`std::io::Read`] when reading an input stops.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(crate) enum Halt {
    #[error("the input is too long")]
    TooLong(u64),
    #[error("the reading was called off")]
    Stopped,
}

fn summary(mistakes: &[Invalid]) -> String {
    match mistakes {
        [] => "the input is not valid".to_owned(),
        [only] => only.to_string(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}

impl ReadError {
    /// Returns the first error, if the input is invalid.
    pub fn first(&self) -> Option<&Invalid> {
        match self {
            ReadError::Invalid(mistakes) => mistakes.first(),
            _ => None,
        }
    }
}

impl From<Invalid> for ReadError {
    fn from(mistake: Invalid) -> Self {
        ReadError::Invalid(vec![mistake])
    }
}

impl From<io::Error> for ReadError {
    /// Unwraps an input error that passed through [`std::io::Read`] (a truncated gzip).
    fn from(error: io::Error) -> Self {
        let error = match error.downcast::<Invalid>() {
            Ok(mistake) => return mistake.into(),
            Err(error) => error,
        };
        match error.downcast::<Halt>() {
            Ok(Halt::TooLong(bytes)) => ReadError::TooLong(bytes),
            Ok(Halt::Stopped) => ReadError::Stopped,
            Err(error) => ReadError::Io(error),
        }
    }
}

/// Why a record was not read: an error in it alone, or one that ends reading.
#[derive(Debug)]
pub(crate) enum Fault {
    /// This event is bad; the next one can be read.
    Event(Invalid),
    /// Nothing after this can be read.
    Stop(ReadError),
}

impl From<Invalid> for Fault {
    fn from(mistake: Invalid) -> Self {
        Fault::Event(mistake)
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        Fault::Stop(error)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Stop(error.into())
    }
}

impl Fault {
    /// Returns an error after which the rest of the input cannot be parsed.
    pub(crate) fn stop(mistake: Invalid) -> Fault {
        Fault::Stop(mistake.into())
    }
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Event(mistake) => mistake.into(),
            Fault::Stop(error) => error,
        }
    }
}
