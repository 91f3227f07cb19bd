//! The name of an input, in messages and in commands.

use meridian_formats::is_compressed;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The name of standard input in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// Returns the name of an input.
pub fn of(path: &Path) -> String {
    if path == Path::new("-") { STANDARD_INPUT.to_owned() } else { path.display().to_string() }
}

/// Returns the command that converts a text from another encoding, into a file of the same extension and another name.
pub fn recode(name: &str, encoding: &str) -> String {
    let iconv = format!("iconv -f {encoding} -t utf-8");
    if name == STANDARD_INPUT {
        return format!("{iconv} > input-utf8.txt");
    }
    let command = match unpacker(name) {
        Some(tool) => format!("{tool} < {} | {iconv}", quoted(name)),
        None => format!("{iconv} {}", quoted(name)),
    };
    let plain = [".gz", ".zst"].into_iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    let part = |text: Option<&OsStr>, other| text.and_then(OsStr::to_str).unwrap_or(other).to_owned();
    let (stem, ending) = (part(Path::new(plain).file_stem(), "input"), part(Path::new(plain).extension(), "txt"));
    format!("{command} > {}", quoted(&format!("{stem}-utf8.{ending}")))
}

/// Returns the tool that decompresses a file, by its content.
fn unpacker(name: &str) -> Option<&'static str> {
    let mut first = [0; 4];
    File::open(name).and_then(|mut file| file.read_exact(&mut first)).ok()?;
    is_compressed(&first).then_some(if first.starts_with(&[0x1f, 0x8b]) { "gunzip -c" } else { "zstd -dc" })
}

/// Quotes the name of an input for a shell, for ogr2ogr.
pub fn quoted(name: &str) -> String {
    if name == STANDARD_INPUT {
        return "/vsistdin/".to_owned();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if name.starts_with('-') {
        // Else it would be an option.
        return quoted(&format!("./{name}"));
    }
    if name.chars().all(plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}
