//! Texts without regard to case, and to how their letters are composed: what `CASEI`, keywords and names are compared by.
//!
//! Two texts that readers take for the same are equal here. Examples: É as one sign and as E with an accent,
//! ΣΑΣ and σας, STRASSE and straße (Unicode 16, section 3.13: canonical caseless matching).

use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// A text without its case, its letters composed.
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { ascii(text) } else { Cow::Owned(folded(text.nfd())) }
}

/// The same for texts that are searched. Forms of one letter that differ in style only, such as full-width
/// signs and half-width kana, are that letter too.
pub fn fold_compatible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { ascii(text) } else { Cow::Owned(folded(text.nfkd())) }
}

/// A text with its letters composed, its case unchanged.
pub fn compose(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// One sign without its case: it may be several.
pub fn fold_sign(sign: char) -> impl Iterator<Item = char> {
    // To upper case and back is Unicode's full case folding, sign by sign. ẞ becomes ss by way of ß and SS, ς
    // becomes σ by way of Σ. Only the dotless ı becomes i, and Cherokee has the other case, which folds
    // alike.
    sign.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// Whether a code point combines with the previous one: an accent, a vowel sign.
pub fn is_mark(sign: char) -> bool {
    !sign.is_ascii() && is_combining_mark(sign)
}

fn ascii(text: &str) -> Cow<'_, str> {
    match text.bytes().any(|b| b.is_ascii_uppercase()) {
        true => Cow::Owned(text.to_ascii_lowercase()),
        false => Cow::Borrowed(text),
    }
}

fn folded(decomposed: impl Iterator<Item = char>) -> String {
    decomposed.flat_map(fold_sign).nfc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_is_without_regard_to_case_and_composition() {
        for (a, b) in [
            ("Straße", "STRASSE"),
            ("STRAẞE", "straße"),
            ("ΣΑΣ", "σας"),
            ("ὈΔΥΣΣΕΎΣ", "Ὀδυσσεύς"),
            ("Ünïted", "üNÏTED"),
            ("Ünïted", "U\u{308}ni\u{308}ted"),
            ("Μαΐου", "ΜΑΪ́ΟΥ"),
            ("한국", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}"),
            ("abc", "ABC"),
            ("é日", "É日"),
        ] {
            assert_eq!(fold(a), fold(b), "{a} {b}");
            assert_eq!(fold_compatible(a), fold_compatible(b), "{a} {b}");
        }
        assert_ne!(fold("a"), fold("á"));
        assert_ne!(fold("ａ"), fold("a"));
        assert_eq!(fold_compatible("ﬁn ＡＢＣ ｶﾞ"), "fin abc ガ");
    }
}
