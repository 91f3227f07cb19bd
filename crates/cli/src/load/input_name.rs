//! The name of an input, in messages and in commands.

/// The name of standard input in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// Quotes the name of an input for a shell, for ogr2ogr.
pub fn quoted(name: &str) -> String {
    if name == STANDARD_INPUT {
        return "/vsistdin/".to_owned();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if name.chars().all(plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}
