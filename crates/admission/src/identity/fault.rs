//! Why a change was not made, and why a credential is invalid.

use meridian_model::Invalid;
use std::fmt;
use std::time::Duration;

/// Why a change was not made.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The request is invalid.
    Invalid(Invalid),
    /// The token, tenant or user does not exist; its kind and name.
    Absent(&'static str, String),
    /// The tenant or user already exists; its kind and name.
    Exists(&'static str, String),
    /// The user or tenant was changed after the caller read it; its kind and name.
    Changed(&'static str, String),
    /// Other processes keep changing the records before this one can.
    Moved,
    /// The records could not be read or written.
    Vault(String),
    /// It is unknown whether the records were written.
    Unknown(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Invalid(invalid) => invalid.fmt(f),
            Fault::Absent(kind, name) => write!(f, "there is no {kind} {name:?}"),
            Fault::Exists(kind, name) => write!(f, "there is a {kind} {name:?} already"),
            Fault::Changed(kind, name) => {
                write!(f, "the {kind} {name:?} was changed meanwhile: read it, and try again")
            }
            Fault::Moved => write!(f, "other servers change tokens, tenants and users too fast: try again later"),
            Fault::Unknown(why) => f.write_str(why),
            Fault::Vault(why) => write!(f, "the records of tokens, tenants and users: {why}"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Invalid> for Fault {
    fn from(invalid: Invalid) -> Fault {
        Fault::Invalid(invalid)
    }
}

/// Why a credential is invalid. Clients get the same response in all cases but [`Unknown::TooMany`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// The text is not that of an existing token or session.
    Credential,
    /// The credential has expired.
    Expired,
    /// Too many tokens from the same address have failed. This one was not verified, and may be after this time.
    TooMany(Duration),
    /// The tenant is suspended or gone.
    Suspended,
    /// A JSON Web Token whose rule names a tenant that does not exist.
    NoTenant,
    /// A JSON Web Token that matches none of the operator's rules.
    NoRule,
    /// An invalid JSON Web Token, with the reason. The reason never contains part of the token.
    Jwt(&'static str),
}
