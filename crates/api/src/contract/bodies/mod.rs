//! The bodies of requests, as types.
//!
//! Bodies that serde parses are parsed into these very types. Our own parsers read the others, with errors that name the
//! member. The types of those (`collections.rs`, `searches.rs`) only describe, and tests compare them with the parsers.

mod access;
mod backup;
mod collections;
mod searches;
mod sign_in;

pub use access::{NewTenant, NewToken, NewUser, UserChange};
pub use backup::Backup;
pub use collections::{CollectionSchema, EventPatch, Settings};
pub use searches::{Question, SavedSearch};
pub use sign_in::{PasswordChange, PasswordForm, SignIn, SignOut};
