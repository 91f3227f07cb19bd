//! Keyword queries: parsed once, then matched against the words of texts.
//!
//! Terms side by side must all match. `OR`, `NOT` (or `-word`), "phrases" and parentheses have their usual meaning.
//! Words are compared as `words.rs` normalises them.

use crate::words::{NormalizedText, read};
use meridian_model::Invalid;

/// Max length of keywords, in bytes.
pub const KEYWORDS_BYTES_MAX: usize = 1_000;
/// Max nesting of parentheses.
const DEPTH_MAX: usize = 16;

/// A parsed keyword query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeywordQuery {
    /// A word or phrase.
    Term {
        /// The normalised words, with a space around each: ` new york `.
        sought: String,
        /// The term as written, without quotes: `New York`.
        written: String,
    },
    /// All of these must match.
    All(Vec<KeywordQuery>),
    /// One of these must match.
    Any(Vec<KeywordQuery>),
    /// This must not match.
    Not(Box<KeywordQuery>),
}

impl KeywordQuery {
    /// Parses keywords. An error names the field `keywords` and states what was expected.
    pub fn parse(text: &str) -> Result<KeywordQuery, Invalid> {
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

    /// Returns whether a text matches.
    pub fn matches(&self, text: &NormalizedText) -> bool {
        match self {
            KeywordQuery::Term { sought, .. } => text.0.contains(sought.as_str()),
            KeywordQuery::All(parts) => parts.iter().all(|part| part.matches(text)),
            KeywordQuery::Any(parts) => parts.iter().any(|part| part.matches(text)),
            KeywordQuery::Not(part) => !part.matches(text),
        }
    }

    /// Returns a set of words with min total cost, and that cost. Every matching text has at least one of them. `None`
    /// for a query without such a set; [`KeywordQuery::parse`] refuses these.
    pub fn required(&self, cost: &dyn Fn(&str) -> f64) -> Option<(f64, Vec<&str>)> {
        let by_cost = |a: &(f64, Vec<&str>), b: &(f64, Vec<&str>)| a.0.total_cmp(&b.0);
        match self {
            KeywordQuery::Term { sought, .. } => {
                sought.split(' ').filter(|word| !word.is_empty()).map(|word| (cost(word), vec![word])).min_by(by_cost)
            }
            // All parts must match, so the rarest one is enough to find the candidates.
            KeywordQuery::All(parts) => parts.iter().filter_map(|part| part.required(cost)).min_by(by_cost),
            KeywordQuery::Any(parts) => parts.iter().try_fold((0.0, Vec::new()), |(total, mut words), part| {
                let (more, of_part) = part.required(cost)?;
                words.extend(of_part);
                Some((total + more, words))
            }),
            // An absent word requires nothing that an index could look up.
            KeywordQuery::Not(_) => None,
        }
    }

    /// Returns the approximate heap size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            KeywordQuery::Term { sought, written } => sought.capacity() + written.capacity(),
            KeywordQuery::All(parts) | KeywordQuery::Any(parts) => {
                parts.capacity() * size_of::<KeywordQuery>() + parts.iter().map(KeywordQuery::bytes).sum::<usize>()
            }
            KeywordQuery::Not(part) => size_of::<KeywordQuery>() + part.bytes(),
        }
    }

    /// Returns whether every alternative has a positive term. Without one, no source can be queried.
    fn asks_for_something(&self) -> bool {
        match self {
            KeywordQuery::Term { .. } => true,
            KeywordQuery::All(parts) => parts.iter().any(KeywordQuery::asks_for_something),
            // Each alternative of an OR needs a positive term: `a OR -b` matches nearly everything.
            KeywordQuery::Any(parts) => parts.iter().all(KeywordQuery::asks_for_something),
            KeywordQuery::Not(_) => false,
        }
    }

    /// Returns whether `OR` is used. Sources that join all words by "and" cannot take such a question.
    pub fn has_alternatives(&self) -> bool {
        match self {
            KeywordQuery::Term { .. } => false,
            KeywordQuery::All(parts) => parts.iter().any(KeywordQuery::has_alternatives),
            KeywordQuery::Any(_) => true,
            KeywordQuery::Not(part) => part.has_alternatives(),
        }
    }

    /// Returns the positive terms separated by spaces, with phrases in quotes. Negated terms are left to the filter
    /// stage.
    pub fn plain(&self) -> String {
        let mut terms = Vec::new();
        self.terms(&mut |term| terms.push(quoted(term)));
        terms.join(" ")
    }

    /// Returns the first positive term as one word of letters and digits, for sources that take a tag.
    pub fn first(&self) -> String {
        let mut first = None;
        self.terms(&mut |term| {
            first.get_or_insert_with(|| term.chars().filter(|c| c.is_alphanumeric()).collect::<String>());
        });
        first.unwrap_or_default()
    }

    fn terms<'a>(&'a self, take: &mut dyn FnMut(&'a str)) {
        match self {
            KeywordQuery::Term { written, .. } => take(written),
            KeywordQuery::All(parts) | KeywordQuery::Any(parts) => parts.iter().for_each(|part| part.terms(take)),
            KeywordQuery::Not(_) => {}
        }
    }

    /// Returns the query for engines with `OR`, quotes and a prefix `not`: `(a OR "b c") -d`.
    pub fn boolean(&self, not: &str) -> String {
        match self {
            KeywordQuery::Term { written, .. } => quoted(written),
            KeywordQuery::All(parts) => parts.iter().map(|part| part.boolean(not)).collect::<Vec<_>>().join(" "),
            KeywordQuery::Any(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| part.boolean(not)).collect();
                format!("({})", parts.join(" OR "))
            }
            KeywordQuery::Not(part) => format!("{not}{}", part.boolean(not)),
        }
    }
}

fn quoted(term: &str) -> String {
    if term.contains(char::is_whitespace) { format!("\"{term}\"") } else { term.to_owned() }
}

fn wrong(detail: impl std::fmt::Display) -> Invalid {
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

    fn any(&mut self, depth: usize) -> Result<KeywordQuery, Invalid> {
        let mut parts = vec![self.all(depth)?];
        while self.eat(&Token::Or) {
            parts.push(self.all(depth)?);
        }
        Ok(one_or(parts, KeywordQuery::Any))
    }

    fn all(&mut self, depth: usize) -> Result<KeywordQuery, Invalid> {
        let mut parts = vec![self.one(depth)?];
        while !matches!(self.peek(), None | Some(Token::Or | Token::Close)) {
            self.eat(&Token::And);
            parts.push(self.one(depth)?);
        }
        Ok(one_or(parts, KeywordQuery::All))
    }

    fn one(&mut self, depth: usize) -> Result<KeywordQuery, Invalid> {
        if depth > DEPTH_MAX {
            return Err(wrong(format!("nested more than {DEPTH_MAX} deep")));
        }
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Not) => Ok(KeywordQuery::Not(Box::new(self.one(depth + 1)?))),
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
                    _ => Ok(KeywordQuery::Term { sought, written }),
                }
            }
            Some(Token::Or | Token::And) => Err(wrong("AND and OR stand between words: expected a word before each")),
            Some(Token::Close) | None => Err(wrong("expected a word, a \"phrase\" or an expression in parentheses")),
        }
    }
}

fn one_or(mut parts: Vec<KeywordQuery>, many: impl FnOnce(Vec<KeywordQuery>) -> KeywordQuery) -> KeywordQuery {
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
    use crate::words::Hashes;
    use proptest::prelude::*;

    fn finds(keywords: &str, text: &str) -> bool {
        KeywordQuery::parse(keywords).expect(keywords).matches(&NormalizedText::of([text]))
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
        assert!(!KeywordQuery::parse("\"one two\"").expect("words").matches(&NormalizedText::of(["one", "two"])));
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
            let mistake = KeywordQuery::parse(keywords).expect_err(keywords);
            assert_eq!(mistake.field.as_deref(), Some("keywords"));
            assert!(mistake.detail.contains(part), "{keywords}: {mistake}");
        }
        assert!(KeywordQuery::parse(&"(".repeat(900)).is_err());
    }

    #[test]
    fn engines_are_asked_in_their_words() {
        let words = KeywordQuery::parse("(storm OR \"high tide\") -Eunice").expect("words");
        assert_eq!(words.boolean("-"), "(storm OR \"high tide\") -Eunice");
        assert_eq!(words.plain(), "storm \"high tide\"");
        assert!(words.has_alternatives());
        assert_eq!(KeywordQuery::parse("\"high tide\" storm").expect("words").first(), "hightide");
    }

    proptest! {
        /// The boolean form parses back to an equivalent query.
        #[test]
        fn the_boolean_form_means_the_same(keywords in "[abc]( (OR |-)?[abc]){0,5}", text in "[abc]( [abc]){0,4}") {
            if let Ok(words) = KeywordQuery::parse(&keywords) {
                let again = KeywordQuery::parse(&words.boolean("-")).expect("reads back");
                let text = NormalizedText::of([text.as_str()]);
                prop_assert_eq!(words.matches(&text), again.matches(&text));
            }
        }

        #[test]
        fn nothing_makes_the_reader_panic(keywords in "\\PC{0,40}") {
            let _ = KeywordQuery::parse(&keywords);
        }
    }
}
