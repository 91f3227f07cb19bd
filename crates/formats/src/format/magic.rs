//! Detects formats by the first bytes of a file.

use super::{Format, name_hint};
use memchr::memmem::find;

/// Bytes that are searched for the first element of an XML document.
const XML_HEAD: usize = 8 << 10;

/// Returns the format of a binary file; `Some(None)` if it is binary but of no supported format.
pub(super) fn binary(name: &str, first: &[u8]) -> Option<Option<Format>> {
    if first.starts_with(b"fgb") && first.get(4..7) == Some(b"fgb") {
        return Some(Some(Format::FlatGeobuf));
    }
    if first.starts_with(b"SQLite format 3\0") {
        // The database's application id: versions 1.0 and 1.1 have ids of their own.
        let marked = matches!(first.get(68..72), Some(b"GPKG" | b"GP10" | b"GP11"));
        return Some((marked || name_hint(name) == Some(Format::GeoPackage)).then_some(Format::GeoPackage));
    }
    if first.starts_with(&[0, 0, 0x27, 0x0a]) && first.get(28..32) == Some(&[0xe8, 3, 0, 0]) {
        return Some(Some(Format::Shapefile));
    }
    if first.starts_with(b"PK\x03\x04") {
        let inside = |ending: &[u8]| find(first, ending).is_some();
        let shapes = [&b".shp"[..], b".shx", b".dbf", b".prj"].into_iter().any(inside);
        return Some(match name_hint(name) {
            Some(hint @ (Format::Kml | Format::Shapefile)) => Some(hint),
            _ if shapes => Some(Format::Shapefile),
            _ if inside(b".kml") => Some(Format::Kml),
            _ => None,
        });
    }
    // A feed message begins with a header, and the header with its version.
    if let [0x0a, _, 0x0a, 3, b'1' | b'2', b'.', ..] = first {
        return Some(Some(Format::GtfsRt));
    }
    None
}

/// Returns the format of an XML document, by its root element.
pub(super) fn xml(first: &[u8]) -> Option<Format> {
    let head = &first[..first.len().min(XML_HEAD)];
    let root = |name: &[u8]| {
        find(head, name).is_some_and(|at| head.get(at + name.len()).is_none_or(|b| !b.is_ascii_alphanumeric()))
    };
    if root(b"<gpx") {
        Some(Format::Gpx)
    } else if root(b"<kml") {
        Some(Format::Kml)
    } else {
        None
    }
}

/// Returns whether the first line that is no comment is an NMEA sentence: `!AIVDM,` or `$GPRMC,` behind a time or
/// tags, with a checksum.
pub(super) fn is_sentence(first: &[u8]) -> bool {
    let lines = first.split(|&b| b == b'\n').take(100);
    let Some(line) = lines.map(<[u8]>::trim_ascii).find(|line| !line.is_empty() && line[0] != b'#') else {
        return false;
    };
    let Some(start) = line.iter().position(|b| matches!(b, b'!' | b'$')) else { return false };
    let word = line.get(start + 1..start + 6).unwrap_or_default();
    let named = word.len() == 5 && word.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    named && line.get(start + 6) == Some(&b',') && line[start..].contains(&b'*')
}

/// Returns whether an array begins, whose first element is an object, or which is empty.
pub(super) fn is_array_of_objects(first: &[u8]) -> bool {
    let inside = first.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    inside.is_some_and(|inside| inside.starts_with(b"{") || inside.trim_ascii_end() == b"]")
}
