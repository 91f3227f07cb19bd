//! Keywords: what a person types into a search box, read once and then held against texts.
//!
//! Words beside each other must all be there; `OR`, `NOT` (or `-word`), "phrases" and parentheses do what they do
//! elsewhere. A word is a run of letters and digits; neither case nor composition counts ([`fold_compatible`]). Scripts that write without spaces (Han, kana,
//! Hangul, Thai) are taken sign by sign, so that a word of them is a phrase of its signs.

use meridian_model::Invalid;
use meridian_model::caseless::{fold_compatible, is_mark};

/// Longest keywords, in bytes.
pub const KEYWORDS_BYTES_MAX: usize = 1_000;
/// Deepest parentheses.
const DEPTH_MAX: usize = 16;

/// A test of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Words {
    /// These words, one after the other; spaces around and between them.
    Term {
        /// As it is looked for: ` new york `.
        sought: String,
        /// As it was written, without quotes: `New York`.
        written: String,
    },
    /// All of these.
    All(Vec<Words>),
    /// Any of these.
    Any(Vec<Words>),
    /// What must not be there.
    Not(Box<Words>),
}

/// A text, ready for [`Words::matches`].
#[derive(Debug, Clone, Default)]
pub struct Prepared(String);

impl Prepared {
    /// Reads texts; a phrase does not run from one into the next.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Prepared {
        let mut out = String::from(" ");
        for text in texts {
            out.reserve(text.len() + 3);
            read(text, &mut out);
            // No word holds this sign, so no phrase crosses it.
            out.push_str("| ");
        }
        Prepared(out)
    }

    /// The words, in order.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.0.split(' ').filter(|word| !word.is_empty() && *word != "|")
    }
}

/// Hashes of the words of texts: of those that [`Prepared`] writes down, in order.
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

    /// FNV-1a, but for where it begins.
    fn bytes(&mut self, bytes: impl Iterator<Item = u8>) {
        self.word = bytes.fold(self.word, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

/// What is made of a text while it is read.
trait Reads {
    /// Letters and digits of ASCII, within a word.
    fn run(&mut self, ascii: &str);
    /// Another sign of a word, without its case.
    fn sign(&mut self, sign: char);
    /// The end of a word.
    fn end(&mut self);
}

/// Words in lower case, each with a space after it.
impl Reads for String {
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

impl Reads for Hashes {
    fn run(&mut self, ascii: &str) {
        self.bytes(ascii.bytes().map(|byte| byte.to_ascii_lowercase()));
    }

    fn sign(&mut self, sign: char) {
        self.bytes(sign.encode_utf8(&mut [0; 4]).bytes());
    }

    fn end(&mut self) {
        // The finalizer of MurmurHash3 (Appleby 2011): each bit of a short word's sum tells of all its letters.
        let mut mixed = std::mem::take(&mut self.word);
        mixed = (mixed ^ mixed >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        self.words.push(mixed ^ mixed >> 33);
    }
}

/// Reads the words of a text.
fn read(text: &str, out: &mut impl Reads) {
    if text.is_ascii() { read_folded(text, out) } else { read_folded(&fold_compatible(text), out) }
}

/// The same of a text without case; that of ASCII letters is left to `out`.
fn read_folded(text: &str, out: &mut impl Reads) {
    let (mut inside, mut rest) = (false, text);
    loop {
        // Most of most texts are runs of ASCII: what is done below to each sign, to all of them at once.
        let run = rest.bytes().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
        if run > 0 {
            out.run(&rest[..run]);
            inside = true;
        }
        let Some(sign) = rest[run..].chars().next() else { break };
        rest = &rest[run + sign.len_utf8()..];
        let alone = stands_alone(sign);
        // What stands upon a letter is part of its word, where the two do not make one sign.
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

/// Whether the sign's script writes words without spaces between them.
pub(crate) fn stands_alone(sign: char) -> bool {
    matches!(u32::from(sign), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x9FFF
        | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

impl Words {
    /// Reads keywords. A mistake names the field `keywords` and says what was expected.
    pub fn parse(text: &str) -> Result<Words, Invalid> {
        if text.len() > KEYWORDS_BYTES_MAX {
            let found = text.len();
            return Err(wrong(format!("{found} bytes are too many: expected at most {KEYWORDS_BYTES_MAX}")));
        }
        let mut reader = Reader { tokens: tokens(text)?, at: 0 };
        let words = reader.any(0)?;
        match reader.peek() {
            None if words.asks_for_something() => Ok(words),
            None => Err(wrong("only words to leave out: expected at least one to look for")),
            Some(_) => Err(wrong("a parenthesis is closed that was not opened")),
        }
    }

    /// Whether a text has what is asked for.
    pub fn matches(&self, text: &Prepared) -> bool {
        match self {
            Words::Term { sought, .. } => text.0.contains(sought.as_str()),
            Words::All(parts) => parts.iter().all(|part| part.matches(text)),
            Words::Any(parts) => parts.iter().any(|part| part.matches(text)),
            Words::Not(part) => !part.matches(text),
        }
    }

    /// Words of which any text that matches has at least one, chosen to cost least together; and what they cost. `None` where
    /// there are none, which keywords that were read never are.
    pub fn required(&self, cost: &dyn Fn(&str) -> f64) -> Option<(f64, Vec<&str>)> {
        let least = |a: &(f64, Vec<&str>), b: &(f64, Vec<&str>)| a.0.total_cmp(&b.0);
        match self {
            Words::Term { sought, .. } => {
                sought.split(' ').filter(|word| !word.is_empty()).map(|word| (cost(word), vec![word])).min_by(least)
            }
            Words::All(parts) => parts.iter().filter_map(|part| part.required(cost)).min_by(least),
            Words::Any(parts) => parts.iter().try_fold((0.0, Vec::new()), |(total, mut words), part| {
                let (more, of_part) = part.required(cost)?;
                words.extend(of_part);
                Some((total + more, words))
            }),
            Words::Not(_) => None,
        }
    }

    /// Whether every alternative has something to look for, so that a source can be asked at all.
    fn asks_for_something(&self) -> bool {
        match self {
            Words::Term { .. } => true,
            Words::All(parts) => parts.iter().any(Words::asks_for_something),
            Words::Any(parts) => parts.iter().all(Words::asks_for_something),
            Words::Not(_) => false,
        }
    }

    /// Whether `OR` is used: sources that join all words by "and" cannot take such a question.
    pub fn has_alternatives(&self) -> bool {
        match self {
            Words::Term { .. } => false,
            Words::All(parts) => parts.iter().any(Words::has_alternatives),
            Words::Any(_) => true,
            Words::Not(part) => part.has_alternatives(),
        }
    }

    /// The terms to look for, phrases in quotes, with a space between; what must not be there is left to the filter.
    pub fn plain(&self) -> String {
        let mut terms = Vec::new();
        self.terms(&mut |term| terms.push(quoted(term)));
        terms.join(" ")
    }

    /// The first term to look for as one word of letters and digits, for sources that take a tag.
    pub fn first(&self) -> String {
        let mut first = None;
        self.terms(&mut |term| {
            first.get_or_insert_with(|| term.chars().filter(|c| c.is_alphanumeric()).collect::<String>());
        });
        first.unwrap_or_default()
    }

    fn terms<'a>(&'a self, take: &mut dyn FnMut(&'a str)) {
        match self {
            Words::Term { written, .. } => take(written),
            Words::All(parts) | Words::Any(parts) => parts.iter().for_each(|part| part.terms(take)),
            Words::Not(_) => {}
        }
    }

    /// As an expression that engines with `OR`, quotes and a sign for "not" take: `(a OR "b c") -d`.
    pub fn boolean(&self, not: &str) -> String {
        match self {
            Words::Term { written, .. } => quoted(written),
            Words::All(parts) => parts.iter().map(|part| part.boolean(not)).collect::<Vec<_>>().join(" "),
            Words::Any(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| part.boolean(not)).collect();
                format!("({})", parts.join(" OR "))
            }
            Words::Not(part) => format!("{not}{}", part.boolean(not)),
        }
    }
}

fn quoted(term: &str) -> String {
    if term.contains(char::is_whitespace) { format!("\"{term}\"") } else { term.to_owned() }
}

fn wrong(detail: impl Into<String>) -> Invalid {
    Invalid::field("keywords", detail)
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Term(String),
    Or,
    And,
    Not,
    Open,
    Close,
}

fn tokens(text: &str) -> Result<Vec<Token>, Invalid> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(sign) = rest.chars().next() {
        let after = &rest[sign.len_utf8()..];
        let (token, left) = match sign {
            '(' => (Token::Open, after),
            ')' => (Token::Close, after),
            '-' if after.starts_with(|c: char| c.is_alphanumeric() || c == '"' || c == '(') => (Token::Not, after),
            '"' => {
                let end = after.find('"').ok_or_else(|| wrong("a quotation mark is opened and not closed"))?;
                (Token::Term(after[..end].to_owned()), &after[end + 1..])
            }
            _ => {
                let end = rest.find(|c: char| c.is_whitespace() || "()\"".contains(c)).unwrap_or(rest.len());
                let token = match &rest[..end] {
                    "OR" => Token::Or,
                    "AND" => Token::And,
                    "NOT" => Token::Not,
                    word => Token::Term(word.to_owned()),
                };
                (token, &rest[end..])
            }
        };
        tokens.push(token);
        rest = left.trim_start();
    }
    Ok(tokens)
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn eat(&mut self, token: &Token) -> bool {
        let here = self.peek() == Some(token);
        self.at += usize::from(here);
        here
    }

    fn any(&mut self, depth: usize) -> Result<Words, Invalid> {
        let mut parts = vec![self.all(depth)?];
        while self.eat(&Token::Or) {
            parts.push(self.all(depth)?);
        }
        Ok(one_or(parts, Words::Any))
    }

    fn all(&mut self, depth: usize) -> Result<Words, Invalid> {
        let mut parts = vec![self.one(depth)?];
        while !matches!(self.peek(), None | Some(Token::Or | Token::Close)) {
            self.eat(&Token::And);
            parts.push(self.one(depth)?);
        }
        Ok(one_or(parts, Words::All))
    }

    fn one(&mut self, depth: usize) -> Result<Words, Invalid> {
        if depth > DEPTH_MAX {
            return Err(wrong(format!("nested more than {DEPTH_MAX} deep")));
        }
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Not) => Ok(Words::Not(Box::new(self.one(depth + 1)?))),
            Some(Token::Open) => {
                let inner = self.any(depth + 1)?;
                match self.eat(&Token::Close) {
                    true => Ok(inner),
                    false => Err(wrong("a parenthesis is opened and not closed")),
                }
            }
            Some(Token::Term(written)) => {
                let mut sought = String::from(" ");
                read(&written, &mut sought);
                match sought.len() {
                    1 => Err(wrong(format!("{written:?} has no letter and no digit: expected a word"))),
                    _ => Ok(Words::Term { sought, written }),
                }
            }
            Some(Token::Or | Token::And) => Err(wrong("AND and OR stand between words: expected a word before each")),
            Some(Token::Close) | None => Err(wrong("expected a word, a \"phrase\" or an expression in parentheses")),
        }
    }
}

fn one_or(mut parts: Vec<Words>, many: impl FnOnce(Vec<Words>) -> Words) -> Words {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            many(parts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn finds(keywords: &str, text: &str) -> bool {
        Words::parse(keywords).expect(keywords).matches(&Prepared::of([text]))
    }

    /// What [`read`] says of each sign, one after the other.
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
            let prepared = Prepared::of(texts.iter().map(String::as_str));
            let mut alone = Hashes::default();
            for word in prepared.words() {
                alone.bytes(word.bytes());
                alone.end();
            }
            prop_assert_eq!(Hashes::of(texts.iter().map(String::as_str)), alone.words);
        }
    }

    #[test]
    fn words_phrases_and_operators() {
        let text = "The Mayor of New York didn't see the flood; #StormEunice hit York.";
        for keywords in [
            "flood",
            "FLOOD york",
            "\"new york\"",
            "fire OR flood",
            "stormeunice",
            "didn't",
            "flood -fire",
            "(fire OR flood) AND NOT (rain OR \"york flood\")",
        ] {
            assert!(finds(keywords, text), "{keywords}");
        }
        for keywords in ["floods", "\"york new\"", "fire", "flood -york", "flood fire", "loo", "NOT NOT flood fire"] {
            assert!(!finds(keywords, text), "{keywords}");
        }
        assert!(finds("東京", "昨日、東京で地震") && !finds("京東", "昨日、東京で地震"));
        assert!(!Words::parse("\"one two\"").expect("words").matches(&Prepared::of(["one", "two"])));
    }

    #[test]
    fn neither_composition_nor_a_final_sigma_matters() {
        for (keywords, text) in [
            ("Café", "the cafe\u{301} is open"),
            ("cafe\u{301}", "the CAFÉ is open"),
            ("σεισμος", "ΣΕΙΣΜΟΣ ΣΤΗΝ ΑΘΗΝΑ"),
            ("ΣΕΙΣΜΟΣ", "σεισμος στην αθηνα"),
            ("\"strasse der\"", "Straße der Republik"),
            ("İstanbul", "i\u{307}stanbul"),
            ("x\u{302}y", "say X\u{302}Y twice"),
            ("ガス", "ｶﾞｽ"),
        ] {
            assert!(finds(keywords, text), "{keywords} in {text}");
            let texts = [text];
            let hashes = Hashes::of(texts);
            assert!(Hashes::of([keywords]).iter().all(|word| hashes.contains(word)), "{keywords} in {text}");
        }
        assert!(!finds("cafe", "café"), "an accent is not case");
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        for (keywords, part) in [
            ("", "expected a word"),
            ("(a", "not closed"),
            ("a)", "not opened"),
            ("\"a", "not closed"),
            ("OR a", "between words"),
            ("-a", "leave out"),
            ("a OR -b", "leave out"),
            ("!!!", "no letter"),
        ] {
            let mistake = Words::parse(keywords).expect_err(keywords);
            assert_eq!(mistake.field.as_deref(), Some("keywords"));
            assert!(mistake.detail.contains(part), "{keywords}: {mistake}");
        }
        assert!(Words::parse(&"(".repeat(900)).is_err());
    }

    #[test]
    fn engines_are_asked_in_their_words() {
        let words = Words::parse("(storm OR \"high tide\") -Eunice").expect("words");
        assert_eq!(words.boolean("-"), "(storm OR \"high tide\") -Eunice");
        assert_eq!(words.plain(), "storm \"high tide\"");
        assert!(words.has_alternatives());
        assert_eq!(Words::parse("\"high tide\" storm").expect("words").first(), "hightide");
    }

    proptest! {
        /// What engines are asked reads back to the same question.
        #[test]
        fn the_boolean_form_means_the_same(keywords in "[abc]( (OR |-)?[abc]){0,5}", text in "[abc]( [abc]){0,4}") {
            if let Ok(words) = Words::parse(&keywords) {
                let again = Words::parse(&words.boolean("-")).expect("reads back");
                let text = Prepared::of([text.as_str()]);
                prop_assert_eq!(words.matches(&text), again.matches(&text));
            }
        }

        #[test]
        fn nothing_makes_the_reader_panic(keywords in "\\PC{0,40}") {
            let _ = Words::parse(&keywords);
        }
    }
}
