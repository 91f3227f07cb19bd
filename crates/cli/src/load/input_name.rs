//! The name of an input, in messages and in commands.

use std::path::Path;

/// The name of standard input in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// Returns the name of an input.
pub fn of(path: &Path) -> String {
    if path == Path::new("-") { STANDARD_INPUT.to_owned() } else { path.display().to_string() }
}

/// Quotes the name of an input for a shell, for ogr2ogr.
pub fn quoted(name: &str) -> String {
    if name == STANDARD_INPUT {
        return "/vsistdin/".to_owned();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if name.chars().all(plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}
