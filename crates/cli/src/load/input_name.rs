//! The name of an input, in messages and in commands.

use meridian_formats::{Format, INPUT, ReadError, is_compressed, sniff};
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The name of standard input in messages.
pub const STANDARD_INPUT: &str = "standard input";

/// What a command says for standard input if its program cannot read that: the user saves it first.
const SAVED: &str = "FILE";
/// GDAL's name of a table on standard input. Without the name of its driver GDAL looks for an extension.
const CSV_STREAM: &str = "CSV:/vsistdin/";
/// How the commands in sentences of the readers begin.
const PROGRAMS: [&str; 3] = ["ogr2ogr ", "python3 ", "(echo "];

/// An input, as messages and the commands in them name it.
#[derive(Debug, Clone)]
pub struct InputName {
    /// Its name in messages.
    pub text: String,
    /// What its mistakes are counted by.
    pub unit: &'static str,
    /// The layer that the user named, if the input may have several.
    layer: Option<String>,
    /// The tool that decompresses it, if it is compressed.
    unpacker: Option<&'static str>,
    /// GDAL's name of standard input, if GDAL reads the format from there.
    stream: Option<&'static str>,
    /// The extension that its format has and its name has not.
    ending: Option<&'static str>,
    /// The delimiter of its cells, if GDAL knows no such tables.
    delimiter: Option<u8>,
}

impl fmt::Display for InputName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl InputName {
    /// Describes an input by its name and its first bytes, as they are on disk.
    pub fn new(text: String, layer: Option<&str>, first: &[u8]) -> InputName {
        let layer = layer.map(str::to_owned);
        let unpacker = unpacker_of(first);
        InputName { text, unit: "line", layer, unpacker, stream: None, ending: None, delimiter: None }
    }

    /// Adds what follows from the format, if it is read, and from the decompressed first bytes.
    pub fn with_format(mut self, format: Option<Format>, unit: &'static str, head: &[u8]) -> InputName {
        self.unit = unit;
        self.layer = self.layer.filter(|_| format.is_none_or(|format| format == Format::GeoPackage));
        self.stream = match format {
            Some(Format::Csv) => Some(CSV_STREAM),
            Some(Format::FlatGeobuf) => Some("/vsistdin/"),
            // XML and JSON. Databases, workbooks and archives are not read front to back.
            _ => head.trim_ascii_start().first().filter(|first| b"<{[\x1e".contains(first)).map(|_| "/vsistdin/"),
        };
        // An archive may be of several formats.
        let unknown = format.filter(|_| !head.starts_with(b"PK") && Format::detect(&self.text, &[]) != format);
        self.with_ending(unknown.map(Format::extension))
    }

    /// Adds the extension that its format has and its name has not.
    pub fn with_ending(self, ending: Option<&'static str>) -> InputName {
        InputName { ending, ..self }
    }

    /// Adds the delimiter of a table: the one that the user named, or that of its first line.
    pub fn with_delimiter(self, named: Option<u8>, head: &[u8]) -> InputName {
        let header = head.split(|&b| b == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
        let delimiter = named.unwrap_or_else(|| sniff(header));
        let is_foreign = self.stream == Some(CSV_STREAM) && !b",;\t ".contains(&delimiter);
        InputName { delimiter: is_foreign.then_some(delimiter), ..self }
    }

    /// Names another file of the same data set, which is not compressed.
    pub fn of_main_file(&self, text: String) -> InputName {
        InputName { text, unpacker: None, ending: None, ..self.clone() }
    }

    /// Returns a sentence for a read error: its first mistake.
    pub fn reason(&self, error: &ReadError) -> String {
        self.insert(&error.first().map_or_else(|| error.to_string(), |mistake| mistake.counted(self.unit)))
    }

    /// Inserts the input into the command of a sentence, so that a shell runs it as it stands.
    pub fn insert(&self, sentence: &str) -> String {
        let Some((before, after)) = sentence.rsplit_once(&format!(" {INPUT}")) else { return sentence.to_owned() };
        let Some(start) = PROGRAMS.iter().filter_map(|program| before.rfind(*program)).max() else {
            return sentence.to_owned();
        };
        let (words, command) = before.split_at(start);
        let is_ogr = command.starts_with(PROGRAMS[0]);
        let stream = self.stream.filter(|_| is_ogr);
        let (unpack, file) = match self.delimiter.filter(|_| is_ogr) {
            Some(delimiter) => (self.with_tabs(delimiter), STANDARD_INPUT.to_owned()),
            None => self.unpacked(stream.is_some()),
        };
        let input = match after.strip_prefix('/') {
            // Of other files than these GDAL must be told where their name ends.
            Some(packed) if file.ends_with(".zip") => quoted(&format!("/vsizip/{file}/{packed}")),
            Some(packed) => quoted(&format!("/vsizip/{{{file}}}/{packed}")),
            None => match stream {
                Some(stream) if file == STANDARD_INPUT => stream.to_owned(),
                Some(CSV_STREAM) if !has_csv_ending(&file) => shell(&format!("CSV:{file}")),
                _ => quoted(&file),
            },
        };
        let after = match (after, &self.layer) {
            ("" | " TABLE", Some(layer)) if is_ogr => format!(" {}", shell(layer)),
            _ if after.starts_with('/') => String::new(),
            _ => after.to_owned(),
        };
        let line = format!("{command} {input}{after}");
        // No program reads and writes the same file.
        let is_own = Path::new(&file).file_stem().is_some_and(|stem| stem == "converted");
        let line = match line.find("converted.").filter(|_| is_own && !line.starts_with("(echo ")) {
            Some(at) => format!("{}converted-2.{}", &line[..at], &line[at + "converted.".len()..]),
            None => line,
        };
        format!("{words}{unpack}{line}")
    }

    /// Returns the command that writes a table with tabs between its cells, as a stream.
    fn with_tabs(&self, delimiter: u8) -> String {
        let tabs = format!("tr {} '\\t'", shell(&char::from(delimiter).to_string()));
        let from = if self.text == STANDARD_INPUT { String::new() } else { format!(" < {}", quoted(&self.text)) };
        match self.unpacker {
            Some(tool) => format!("{tool}{from} | {tabs} | "),
            None => format!("{tabs}{from} | "),
        }
    }

    /// Returns the command that decompresses the input, if it must be, and the name of the file that it makes. Standard
    /// input goes on as a stream to a program that reads one.
    fn unpacked(&self, to_stream: bool) -> (String, String) {
        let name = &self.text;
        let file = if name == STANDARD_INPUT && !to_stream { SAVED } else { name.as_str() };
        let Some(tool) = self.unpacker else { return (String::new(), file.to_owned()) };
        if name == STANDARD_INPUT {
            let into = if to_stream { "| ".to_owned() } else { format!("> {SAVED} && ") };
            return (format!("{tool} {into}"), file.to_owned());
        }
        let known = [(".gz", "gunzip -k"), (".zst", "zstd -d")];
        let plain = known.into_iter().find_map(|(ending, tool)| Some((tool, name.strip_suffix(ending)?)));
        if let Some((tool, plain)) = plain.filter(|_| self.ending.is_none()) {
            return (format!("{tool} {} && ", quoted(name)), plain.to_owned());
        }
        let path = Path::new(Path::new(name).file_name().and_then(OsStr::to_str).unwrap_or("input"));
        let is_packed = |ending: &OsStr| ["gz", "zst", "zstd"].iter().any(|packed| ending.eq_ignore_ascii_case(packed));
        let path = if path.extension().is_some_and(is_packed) { path.with_extension("") } else { path.to_owned() };
        let path = self.ending.map_or_else(|| path.clone(), |ending| path.with_extension(ending));
        let plain = format!("unpacked-{}", path.display());
        (format!("{tool} < {} > {} && ", quoted(name), quoted(&plain)), plain)
    }
}

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
    unpacker_of(&first)
}

/// Returns the tool that decompresses what begins with these bytes.
fn unpacker_of(first: &[u8]) -> Option<&'static str> {
    is_compressed(first).then_some(if first.starts_with(&[0x1f, 0x8b]) { "gunzip -c" } else { "zstd -dc" })
}

/// Returns whether GDAL knows a table by its name.
fn has_csv_ending(name: &str) -> bool {
    let ending = Path::new(name).extension().unwrap_or_default();
    ["csv", "tsv"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Quotes the name of an input for a shell, for ogr2ogr.
pub fn quoted(name: &str) -> String {
    if name == STANDARD_INPUT {
        return "/vsistdin/".to_owned();
    }
    if name.starts_with('-') {
        // Else it would be an option.
        return quoted(&format!("./{name}"));
    }
    shell(name)
}

/// Quotes a text for a shell.
fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    let is_plain = !text.is_empty() && text.chars().all(plain);
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
