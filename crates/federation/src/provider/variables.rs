//! Variables of a request: the values that a question provides for the templates of a declaration.

use crate::declaration::{SourceDeclaration, template};
use crate::question::Question;

/// The year 2100, in microseconds since 1970: the end of an unbounded interval.
const FAR_OFF: i64 = 4_102_444_800_000_000;

/// The location of the next page.
#[derive(Debug, Clone)]
pub enum Page {
    /// By the numbers of pages and of results before it.
    Numbered(u64, u64),
    /// By its URL.
    At(String),
    /// By its cursor.
    Behind(String),
}

/// The inputs of a request.
#[derive(Debug, Clone, Copy)]
pub struct Variables<'a> {
    /// The provider.
    pub declared: &'a SourceDeclaration,
    /// The question.
    pub question: &'a Question,
    /// The page requested.
    pub page: &'a Page,
    /// The access token, if the source requires one.
    pub token: Option<&'a str>,
}

impl Variables<'_> {
    /// Returns the value of a variable, if the question provides it.
    pub fn value(&self, name: &str, format: &str) -> Option<String> {
        let question = self.question;
        let words = question.keywords.as_ref();
        let around = |pick: fn((f64, f64, f64)) -> f64| question.area().map(|area| number(pick(area.circle())));
        let side = |at: usize| question.area().map(|area| number(area.sides()[at]));
        let instant = |micros: i64| {
            let open = micros == i64::MIN || micros == i64::MAX;
            (!open).then(|| template::instant(micros, format)).flatten()
        };
        match name {
            "words" => words.map(|w| w.plain()),
            "boolean" => words.map(|w| w.boolean("-")),
            "boolean_not" => words.map(|w| w.boolean("NOT ")),
            "first_word" => words.map(|w| w.first()),
            "lon" => around(|c| c.0),
            "lat" => around(|c| c.1),
            "radius_m" => around(|c| c.2.ceil()),
            "radius_km" => around(|c| c.2 / 1000.0),
            "west" => side(0),
            "south" => side(1),
            "east" => side(2),
            "north" => side(3),
            "author" => question.author.clone(),
            "start" => instant(question.interval.start),
            "end" => instant(question.interval.end),
            // For sources that require both ends, an unbounded end lies in the far future or past.
            "after" if question.has_time() => template::instant(question.interval.start.max(0), format),
            "before" if question.has_time() => template::instant(question.interval.end.min(FAR_OFF), format),
            "language" => question.language.clone(),
            "limit" => Some(self.size().to_string()),
            "page" => self.numbered(|pages, _| pages),
            "offset" => self.numbered(|_, results| results),
            "cursor" => match self.page {
                Page::Behind(cursor) => Some(cursor.clone()),
                _ => None,
            },
            "token" => self.token.map(str::to_owned),
            _ => std::env::var(name.strip_prefix("env.")?).ok(),
        }
    }

    /// Returns the number of results to request in a page.
    pub fn size(&self) -> usize {
        self.declared.size.min(self.question.limit).max(self.declared.size_min)
    }

    fn numbered(&self, pick: fn(u64, u64) -> u64) -> Option<String> {
        match self.page {
            Page::Numbered(pages, results) => Some((self.declared.first + pick(*pages, *results)).to_string()),
            _ => None,
        }
    }
}

fn number(value: f64) -> String {
    format!("{value:.6}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
