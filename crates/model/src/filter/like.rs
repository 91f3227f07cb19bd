//! `LIKE`: patterns with `%` and `_`, matched in time linear in the text.

use crate::caseless::fold;
use crate::error::Invalid;

/// A `LIKE` pattern: runs of characters between `%`, in which a wildcard matches one character.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pattern {
    /// The pieces between the `%`, matched in order: the first at the start and the last at the end of the text.
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// Literal characters.
    Plain(String),
    /// Characters; `None` matches any one character.
    Wild(Vec<Option<char>>),
}

/// Max characters between two `%` if a wildcard is among them: the search state has this many bits.
const WILD_CHARS_MAX: usize = u128::BITS as usize;

/// A case-insensitive piece. Runs of characters are folded together, since folding may compose neighbours.
fn fold_runs(piece: &[Option<char>]) -> Vec<Option<char>> {
    let mut folded = Vec::with_capacity(piece.len());
    // A wildcard separates runs: no character composes across it, as it stands for a character not known yet.
    for run in piece.chunk_by(|a, b| a.is_some() && b.is_some()) {
        match run.iter().copied().collect::<Option<String>>() {
            Some(text) => folded.extend(fold(&text).chars().map(Some)),
            None => folded.extend_from_slice(run),
        }
    }
    folded
}

impl Pattern {
    /// Parses a pattern: `%` is any text, `_` any character, and `\` escapes the next character.
    pub(crate) fn new(pattern: &str, folded: bool) -> Result<Pattern, Invalid> {
        let mut pieces = vec![Vec::new()];
        let mut chars = pattern.chars();
        let plain = |pieces: &mut Vec<Vec<Option<char>>>, c: char| {
            if let Some(last) = pieces.last_mut() {
                last.push(Some(c));
            }
        };
        while let Some(c) = chars.next() {
            match c {
                '%' => pieces.push(Vec::new()),
                '_' => {
                    if let Some(last) = pieces.last_mut() {
                        last.push(None);
                    }
                }
                // A trailing backslash is literal.
                '\\' => plain(&mut pieces, chars.next().unwrap_or('\\')),
                c => plain(&mut pieces, c),
            }
        }
        let pieces: Vec<Piece> = pieces
            .into_iter()
            .map(|piece| if folded { fold_runs(&piece) } else { piece })
            .map(|piece| match piece.iter().copied().collect::<Option<String>>() {
                Some(text) => Piece::Plain(text),
                None => Piece::Wild(piece),
            })
            .collect();
        // The first and the last piece have a fixed position; only those between are searched for.
        let searched = pieces.get(1..pieces.len() - 1).unwrap_or_default();
        if searched.iter().any(|piece| matches!(piece, Piece::Wild(wanted) if wanted.len() > WILD_CHARS_MAX)) {
            return Err(Invalid::field(
                "filter",
                format!(
                    "a LIKE pattern has _ among more than {WILD_CHARS_MAX} characters between two %: expected fewer"
                ),
            ));
        }
        Ok(Pattern { pieces })
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else {
            return text.is_empty();
        };
        let Some(mut at) = first.prefix(text) else {
            return false;
        };
        let Some((last, middle)) = rest.split_last() else {
            return at == text.len();
        };
        // The earliest match of each piece leaves the most room for the next.
        for piece in middle {
            let Some(end) = piece.find(&text[at..]) else {
                return false;
            };
            at += end;
        }
        // The last piece is anchored at the end, and must not overlap the text consumed by the middle pieces.
        last.is_suffix(&text[at..])
    }
}

impl Piece {
    /// End of the piece, if the text starts with it.
    fn prefix(&self, text: &str) -> Option<usize> {
        match self {
            Piece::Plain(plain) => text.starts_with(plain).then_some(plain.len()),
            Piece::Wild(wanted) => {
                let mut chars = text.chars();
                for c in wanted {
                    let found = chars.next()?;
                    if c.is_some_and(|c| c != found) {
                        return None;
                    }
                }
                Some(text.len() - chars.as_str().len())
            }
        }
    }

    /// End of the earliest match in the text.
    fn find(&self, text: &str) -> Option<usize> {
        match self {
            Piece::Plain(plain) => text.find(plain).map(|at| at + plain.len()),
            Piece::Wild(wanted) => find_wild(wanted, text),
        }
    }

    fn is_suffix(&self, text: &str) -> bool {
        match self {
            Piece::Plain(plain) => text.ends_with(plain),
            Piece::Wild(wanted) => {
                let mut chars = text.chars().rev();
                wanted.iter().rev().all(|c| chars.next().is_some_and(|found| c.is_none_or(|c| c == found)))
            }
        }
    }
}

/// Returns the end of the earliest match of at most [`WILD_CHARS_MAX`] characters, in time linear in the text. The
/// algorithm is that of Baeza-Yates and Gonnet (A new approach to text searching, 1992). Bit `n` of the state is set if
/// the last `n + 1` characters of the text match the first `n + 1` of the piece.
fn find_wild(wanted: &[Option<char>], text: &str) -> Option<usize> {
    let bits = |fits: &dyn Fn(char) -> bool| {
        wanted.iter().enumerate().filter(|(_, c)| c.is_none_or(fits)).fold(0u128, |bits, (n, _)| bits | 1 << n)
    };
    let any = bits(&|_| false);
    let mut of_chars: Vec<(char, u128)> = wanted.iter().flatten().map(|&c| (c, bits(&|known| known == c))).collect();
    of_chars.sort_unstable();
    let whole = 1u128 << (wanted.len() - 1);
    let mut state = 0u128;
    for (at, c) in text.char_indices() {
        let fits = of_chars.binary_search_by_key(&c, |known| known.0).map_or(any, |found| of_chars[found].1);
        state = (state << 1 | 1) & fits;
        if state & whole != 0 {
            return Some(at + c.len_utf8());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns() {
        let cases = [
            ("", "", true),
            ("", "a", false),
            ("%", "", true),
            ("%", "anything", true),
            ("a%", "abc", true),
            ("a%", "bac", false),
            ("%c", "abc", true),
            ("%b%", "abc", true),
            ("a_c", "abc", true),
            ("a_c", "aéc", true),
            ("a_c", "ac", false),
            ("_", "", false),
            ("__", "é日", true),
            ("a%b%c", "a-b-b-c", true),
            ("a%b%c", "acb", false),
            ("aba%aba", "aba", false),
            ("aba%aba", "abaaba", true),
            ("%_b", "ab", true),
            ("%_b", "b", false),
            ("%a_%", "xxaéyy", true),
            ("100\\%", "100%", true),
            ("100\\%", "1000", false),
            ("a\\_b", "a_b", true),
            ("a\\_b", "axb", false),
            ("a\\\\b", "a\\b", true),
            ("a\\", "a\\", true),
            ("%%", "x", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(Pattern::new(pattern, false).unwrap().matches(text), expected, "{text:?} LIKE {pattern:?}");
        }
        assert!(Pattern::new("STRA__E%", true).unwrap().matches(&fold("straße")));
        assert!(Pattern::new("Éa%", true).unwrap().matches(&fold("éAbc")));
        assert!(Pattern::new("E\u{301}_%", true).unwrap().matches(&fold("éAbc")), "composed or not");
        assert!(Pattern::new("%ΟΣ", true).unwrap().matches(&fold("Ὀδυσσεύς και Λόγος")));
    }

    #[test]
    fn wildcards_between_others_are_searched_for_in_linear_time_or_refused() {
        let most = WILD_CHARS_MAX;
        let (text, long) = ("a".repeat(1 << 20), format!("{}b", "_".repeat(most - 1)));
        // Nearly every position of a long text matches: tried one by one, this would take a hundred million
        // comparisons.
        assert!(!Pattern::new(&format!("%{long}%"), false).unwrap().matches(&text));
        assert!(Pattern::new(&format!("%{long}%"), false).unwrap().matches(&format!("{text}b")));
        assert!(Pattern::new(&format!("%_{long}%"), false).is_err());
        // Pieces at either end have a fixed position.
        assert!(Pattern::new(&format!("_{long}%"), false).unwrap().matches(&format!("{}b", "é".repeat(most))));
        assert!(Pattern::new(&format!("%_{long}"), false).unwrap().matches(&format!("x{}b", "é".repeat(most))));
    }

    proptest! {
        #[test]
        fn the_earliest_place_is_found(wanted in "[ab_]{1,6}", text in "[abcé]{0,40}") {
            let wanted: Vec<Option<char>> = wanted.chars().map(|c| (c != '_').then_some(c)).collect();
            let piece = Piece::Wild(wanted);
            let tried = text.char_indices().find_map(|(at, _)| piece.prefix(&text[at..]).map(|end| at + end));
            prop_assert_eq!(piece.find(&text), tried);
        }
    }
}
