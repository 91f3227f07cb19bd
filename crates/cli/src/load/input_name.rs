//! The name of an input, in messages and in commands.

use std::ffi::OsStr;
use std::path::Path;

/// The name of standard input in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// Returns the name of an input.
pub fn of(path: &Path) -> String {
    if path == Path::new("-") { STANDARD_INPUT.to_owned() } else { path.display().to_string() }
}

/// Returns the command that converts a text from another encoding, into a file of the same extension.
pub fn recode(name: &str, encoding: &str) -> String {
    let iconv = format!("iconv -f {encoding} -t utf-8");
    let packed = [(".gz", "gunzip -c"), (".zst", "zstd -dc")];
    let unpacked = packed.into_iter().find_map(|(ending, tool)| Some((name.strip_suffix(ending)?, tool)));
    let (plain, command) = match unpacked {
        Some((plain, tool)) => (plain, format!("{tool} {} | {iconv}", quoted(name))),
        None if name == STANDARD_INPUT => (name, iconv),
        None => (name, format!("{iconv} {}", quoted(name))),
    };
    let ending = Path::new(plain).extension().and_then(OsStr::to_str).unwrap_or("txt");
    format!("{command} > {}", quoted(&format!("converted.{ending}")))
}

/// Quotes the name of an input for a shell, for ogr2ogr.
pub fn quoted(name: &str) -> String {
    if name == STANDARD_INPUT {
        return "/vsistdin/".to_owned();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if name.chars().all(plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}
