//! The words of texts, normalised for comparison.
//!
//! A word is a run of letters and digits; case and Unicode composition are folded ([`fold_compatible`]). Scripts that
//! write without spaces (Han, kana, Hangul, Thai) are split into characters, so that a word of them is a phrase.

use meridian_model::caseless::{fold_compatible, is_mark};

/// A text, normalised for [`crate::KeywordQuery::matches`].
#[derive(Debug, Clone, Default)]
pub struct NormalizedText(pub(crate) String);

impl NormalizedText {
    /// Normalises texts. No phrase spans two of them.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> NormalizedText {
        let mut out = String::from(" ");
        for text in texts {
            out.reserve(text.len() + 3);
            read(text, &mut out);
            // No word contains this character, so no phrase spans it.
            out.push_str("| ");
        }
        NormalizedText(out)
    }

    /// Returns the words, in order.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.0.split(' ').filter(|word| !word.is_empty() && *word != "|")
    }
}

/// Hashes the words of texts, in order; the words are those of [`NormalizedText`].
#[derive(Debug, Default)]
pub(crate) struct Hashes {
    words: Vec<u64>,
    word: u64,
}

impl Hashes {
    pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<u64> {
        let mut hashes = Hashes::default();
        texts.into_iter().for_each(|text| read(text, &mut hashes));
        hashes.words
    }

    /// FNV-1a with another initial value.
    fn bytes(&mut self, bytes: impl Iterator<Item = u8>) {
        self.word = bytes.fold(self.word, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

/// A consumer of the words of a text.
pub(crate) trait WordSink {
    /// Receives ASCII letters and digits within a word.
    fn run(&mut self, ascii: &str);
    /// Receives another character of a word, case-folded.
    fn sign(&mut self, sign: char);
    /// Receives the end of a word.
    fn end(&mut self);
}

/// Words in folded case, each followed by a space.
impl WordSink for String {
    fn run(&mut self, ascii: &str) {
        let from = self.len();
        self.push_str(ascii);
        self[from..].make_ascii_lowercase();
    }

    fn sign(&mut self, sign: char) {
        self.push(sign);
    }

    fn end(&mut self) {
        self.push(' ');
    }
}

impl WordSink for Hashes {
    fn run(&mut self, ascii: &str) {
        self.bytes(ascii.bytes().map(|byte| byte.to_ascii_lowercase()));
    }

    fn sign(&mut self, sign: char) {
        self.bytes(sign.encode_utf8(&mut [0; 4]).bytes());
    }

    fn end(&mut self) {
        // The finalizer of MurmurHash3 (Appleby 2011): every bit of the hash depends on every letter, even of short
        // words.
        let mut mixed = std::mem::take(&mut self.word);
        mixed = (mixed ^ mixed >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        self.words.push(mixed ^ mixed >> 33);
    }
}

/// Splits a text into words.
pub(crate) fn read(text: &str, out: &mut impl WordSink) {
    if text.is_ascii() { read_folded(text, out) } else { read_folded(&fold_compatible(text), out) }
}

/// Splits a case-folded text. `out` folds ASCII letters itself.
fn read_folded(text: &str, out: &mut impl WordSink) {
    let (mut inside, mut rest) = (false, text);
    loop {
        // Fast path: most texts are mostly ASCII runs, which need no work for each character.
        let run = rest.bytes().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
        if run > 0 {
            out.run(&rest[..run]);
            inside = true;
        }
        let Some(sign) = rest[run..].chars().next() else { break };
        rest = &rest[run + sign.len_utf8()..];
        let alone = stands_alone(sign);
        // A combining mark belongs to the word of its letter, even if the two have no composed form.
        let upon = inside && !alone && is_mark(sign);
        if !sign.is_alphanumeric() && !upon {
            // An apostrophe is part of its word: don't, l'eau.
            if inside && !matches!(sign, '\'' | '’') {
                out.end();
                inside = false;
            }
            continue;
        }
        if alone && inside {
            out.end();
        }
        out.sign(sign);
        inside = !alone;
        if alone {
            out.end();
        }
    }
    if inside {
        out.end();
    }
}

/// Returns whether the character's script writes words without spaces between them.
pub(crate) fn stands_alone(sign: char) -> bool {
    matches!(u32::from(sign), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x9FFF
        | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference for [`read`]: processes one character at a time.
    fn sign_by_sign(text: &str) -> String {
        let (mut out, mut inside) = (String::new(), false);
        for sign in fold_compatible(text).chars() {
            let alone = stands_alone(sign);
            if sign.is_alphanumeric() || inside && !alone && is_mark(sign) {
                let between = if alone && inside { " " } else { "" };
                let after = if alone { " " } else { "" };
                out.extend(between.chars().chain([sign]).chain(after.chars()));
                inside = !alone;
            } else if inside && !matches!(sign, '\'' | '’') {
                out.push(' ');
                inside = false;
            }
        }
        out + if inside { " " } else { "" }
    }

    proptest! {
        #[test]
        fn runs_are_read_as_their_signs_are(text in "[a-cA-C0-9 '’.,éÉßİς\u{301}東ก|-]{0,80}") {
            let mut runs = String::new();
            read(&text, &mut runs);
            prop_assert_eq!(runs, sign_by_sign(&text));
        }

        #[test]
        fn hashes_are_those_of_the_words(texts in proptest::collection::vec("[a-cA-C0-9 '’.,éÉßİ東ก|-]{0,40}", 0..3)) {
            let prepared = NormalizedText::of(texts.iter().map(String::as_str));
            let mut alone = Hashes::default();
            for word in prepared.words() {
                alone.bytes(word.bytes());
                alone.end();
            }
            prop_assert_eq!(Hashes::of(texts.iter().map(String::as_str)), alone.words);
        }
    }
}
