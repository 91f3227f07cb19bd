//! The base map that an operator configures in place of the built-in one: a style, or a tile file (PMTiles) served in
//! parts.

use crate::config::BaseMap;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::protocol::range::Range;
use crate::protocol::tags;
use crate::request::scope::Scope;
use crate::response::respond;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use meridian_backend::{Disk, OpenMode};
use std::io;
use std::path::Path;

/// Max bytes of a part. A client that requests more gets the first bytes and reads on (RFC 9110, 15.3.7). Directories
/// and tiles are far smaller.
const PART_BYTES_MAX: u64 = 8 << 20;
/// Bytes of the header of a tile file. It names the offset and the length of every section that follows, so another
/// file has another one.
const HEAD_BYTES: u64 = 127;

/// `GET /base-map.pmtiles`: a part of the file.
pub async fn get(state: Scope, headers: HeaderMap) -> Result<Response> {
    let Some(BaseMap::Tiles(path)) = &state.config.base_map else {
        return Err(Problem::not_found(
            "this server has no base map of its own: the setting server.base_map names one",
        ));
    };
    let asked = headers.get(header::RANGE).and_then(Range::of).ok_or_else(|| {
        Problem::parameter("Range", "the file is served in parts: expected one range such as bytes=0-16383")
    })?;
    let if_range = headers.get(header::IF_RANGE).cloned();
    let (disk, path) = (state.disk.clone(), path.clone());
    let read = tokio::task::spawn_blocking(move || read_part(&*disk, &path, asked));
    let part = read.await.map_err(Problem::internal)?;
    let TileFile { length, head, part } =
        part.map_err(|error| Problem::internal(format!("the base map cannot be read: {error}")))?;
    let mut headers = HeaderMap::new();
    // A client that holds parts of a file must learn that this is another one (RFC 9110, 15.3.7).
    tags::of_bytes(&mut headers, &[&head[..], &length.to_le_bytes()].concat());
    if if_range.is_some_and(|state| headers.get(header::ETAG) != Some(&state)) {
        // The range does not count (RFC 9110, 13.1.5), and the whole file is not served.
        return Err(Problem::parameter("If-Range", "the file is another one: send its range without this condition"));
    }
    let Some(Part { from, bytes }) = part else {
        let detail = format!("the file has {length} bytes, none of them in the range");
        let whole = HeaderValue::from_str(&format!("bytes */{length}")).map_err(Problem::internal)?;
        return Err(Problem::new(Kind::RangeNotSatisfiable, detail).header(header::CONTENT_RANGE, whole));
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/vnd.pmtiles"));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    let last = (from + bytes.len() as u64).saturating_sub(1);
    respond::insert(&mut headers, header::CONTENT_RANGE, &format!("bytes {from}-{last}/{length}"));
    Ok((StatusCode::PARTIAL_CONTENT, headers, bytes).into_response())
}

/// What is read of a tile file.
struct TileFile {
    length: u64,
    /// Its first bytes.
    head: Vec<u8>,
    /// `None` if the requested part lies beyond the end.
    part: Option<Part>,
}

/// A part of a file.
struct Part {
    /// Offset of its first byte.
    from: u64,
    bytes: Vec<u8>,
}

/// Reads the length and the header of a file, and the requested part.
fn read_part(disk: &dyn Disk, path: &Path, asked: Range) -> io::Result<TileFile> {
    let file = disk.open(path, OpenMode::Read)?;
    let length = file.len()?;
    let read = |from: u64, bytes: u64| {
        let mut read = vec![0; bytes as usize];
        file.read_at(from, &mut read).map(|()| read)
    };
    let head = read(0, length.min(HEAD_BYTES))?;
    let part = match asked.within(length) {
        None => None,
        Some((from, to)) => Some(Part { from, bytes: read(from, (to - from).min(PART_BYTES_MAX))? }),
    };
    Ok(TileFile { length, head, part })
}
