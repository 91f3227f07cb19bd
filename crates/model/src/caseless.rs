//! Case-insensitive texts, independent of how letters are composed. `CASEI`, keywords and names are compared this
//! way.
//!
//! Texts that readers consider the same are equal here. Examples: É precomposed and as E with a combining accent, ΣΑΣ
//! and σας, STRASSE and straße (Unicode 16, section 3.13: canonical caseless matching).

use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Folds the case of a text and composes its letters.
pub fn fold(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { ascii(text) } else { Cow::Owned(folded(text.nfd())) }
}

/// Same as [`fold`] for texts that are searched. Compatibility forms, such as full-width signs and half-width kana,
/// are folded to the plain letter as well.
pub fn fold_compatible(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { ascii(text) } else { Cow::Owned(folded(text.nfkd())) }
}

/// Composes the letters of a text and keeps its case.
pub fn compose(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// Folds the case of one character, which may yield several.
pub fn fold_sign(sign: char) -> impl Iterator<Item = char> {
    // Upper-casing and lower-casing again equals Unicode's full case folding, character by character. ẞ becomes ss by
    // way of ß and SS, ς becomes σ by way of Σ. The exceptions are Cherokee, which folds to the other case
    // consistently, and the dotless ı, which folds to itself although its upper case is I.
    let folded = sign.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    folded.map(move |folded| if sign == 'ı' { sign } else { folded })
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
        // CaseFolding.txt has no entry of status C or F for the dotless ı.
        assert_eq!(fold("IŞIK ışık"), "işik ışık");
        assert_eq!(fold_compatible("Iı"), "iı");
        assert_eq!(fold("İ"), fold("i\u{307}"));
        assert_ne!(fold("ａ"), fold("a"));
        assert_eq!(fold_compatible("ﬁn ＡＢＣ ｶﾞ"), "fin abc ガ");
    }
}
