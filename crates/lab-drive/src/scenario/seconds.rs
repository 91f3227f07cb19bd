//! Checks of seconds and factors.

/// Checks for seconds (or a factor) of 0 or more, and no more than a year.
pub(super) fn not_negative(name: &str, value: f64) -> Result<(), String> {
    match value {
        v if (0.0..=31_536_000.0).contains(&v) => Ok(()),
        v => Err(format!("{name} = {v}: expected 0 or more")),
    }
}
