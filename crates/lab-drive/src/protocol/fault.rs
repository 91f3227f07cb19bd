//! Reasons why an exchange failed: few distinct texts, so that a report can count them.

use meridian_lab_results::record::Outcome;
use std::borrow::Cow;
use std::io::{Error, ErrorKind};

/// Why an exchange failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeError {
    /// The text for the record.
    pub outcome: Outcome,
    /// Reason: one of few sentences.
    pub detail: Cow<'static, str>,
}

/// Error of a connection that the other side has closed.
pub const CLOSED: &str = "the connection was closed";

/// Common prefix of every protocol's error for input that is not of that protocol.
pub const GARBAGE: &str = "the answer is not ";

impl ExchangeError {
    /// Returns the error of a failed transport or protocol.
    pub fn failed(detail: impl Into<Cow<'static, str>>) -> ExchangeError {
        ExchangeError { outcome: Outcome::Failed, detail: detail.into() }
    }

    /// Returns the error of a request that the server refused on purpose.
    pub fn refused(detail: impl Into<Cow<'static, str>>) -> ExchangeError {
        ExchangeError { outcome: Outcome::Refused, detail: detail.into() }
    }

    /// Returns the error of a failure to connect. A lack of ports or descriptors on this machine is the lab's limit;
    /// all else is the target's.
    pub fn not_connected(error: &Error) -> ExchangeError {
        // EMFILE, ENFILE, EADDRNOTAVAIL of Linux.
        let own = match error.raw_os_error() {
            Some(24 | 23) => Some("no descriptor was left for a connection"),
            Some(99) => Some("no local port was left for a connection"),
            _ => None,
        };
        if let Some(detail) = own {
            return ExchangeError { outcome: Outcome::NotSent, detail: detail.into() };
        }
        ExchangeError::failed(match error.kind() {
            ErrorKind::ConnectionRefused => "the connection was refused",
            ErrorKind::TimedOut => "connecting timed out",
            ErrorKind::ConnectionReset => "the connection was reset",
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => "the host cannot be reached",
            _ => "connecting failed",
        })
    }

    /// Returns the error of a connection that failed in use.
    pub fn broken(error: &Error) -> ExchangeError {
        ExchangeError::failed(match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => CLOSED,
            _ => "the connection failed",
        })
    }
}
