//! Responses of NATS servers for `fuzz/targets`. Not part of the crate's interface.

use crate::synced::{Responses, judge};

/// Checks the response of a server's monitoring address.
///
/// # Errors
/// The problem, as a sentence.
pub fn monitor(text: &str) -> Result<(), String> {
    let said = serde_json::from_str(text).map_err(|e| e.to_string())?;
    judge(&Responses { statuses: vec![("http://n".to_owned(), said)], silent: Vec::new() })
}
