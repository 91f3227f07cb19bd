//! The items of a source: made-up places with texts.

use super::file::SourceFile;
use crate::generate::stream;
use rand::RngExt;
use std::sync::LazyLock;

/// Returns the items of a page, as the inside of a JSON list. `page` is its number and its count of items; a changed
/// schema has other names.
pub(super) fn items(file: &SourceFile, random: &mut rand_pcg::Pcg64, page: (u64, u64), changed: bool) -> String {
    let (page, here) = page;
    let item = |k: u64| {
        let id = random.random::<u32>();
        let text = words(random, file.item_bytes);
        let (lon, lat) = (random.random_range(-180.0..180.0), random.random_range(-85.0..85.0));
        match changed {
            true => format!(r#"{{"key":{id},"title":"{text}"}}"#),
            false => {
                let name = &file.name;
                format!(r#"{{"id":"{name}-{page}-{k}-{id:08x}","lon":{lon:.6},"lat":{lat:.6},"text":"{text}"}}"#)
            }
        }
    };
    (0..here).map(item).collect::<Vec<_>>().join(",")
}

/// Words for the texts.
const PIECES: usize = 4_096;
/// Bytes of each word.
const PIECE: usize = 64;

/// Syllables of made-up words of about five letters.
static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut random = stream(0, &[]);
    let mut text = String::with_capacity(PIECES * PIECE);
    while text.len() < PIECES * PIECE {
        // Begins and ends with a letter, so that pieces do not join at two spaces.
        let inside = !matches!(text.len() % PIECE, 0 | 63) && !text.ends_with(' ');
        let letter = char::from(b'a' + random.random_range(0..26_u8));
        text.push(if inside && random.random_ratio(1, 5) { ' ' } else { letter });
    }
    text
});

/// Returns a text of this many bytes. It is made from pieces, not character by character: all sources wait while a
/// page is made.
fn words(random: &mut rand_pcg::Pcg64, count: usize) -> String {
    let mut text = String::with_capacity(count);
    while text.len() < count {
        let piece = &TEXT[random.random_range(0..PIECES) * PIECE..][..PIECE];
        text.push_str(&piece[..PIECE.min(count - text.len())]);
    }
    if text.ends_with(' ') {
        text.replace_range(count - 1.., "e");
    }
    text
}
