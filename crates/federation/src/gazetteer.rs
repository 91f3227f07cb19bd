//! Place names in texts: a table of phrases, matched at each word, the longest first.
//!
//! The match is a guess: no place is better than a wrong one. A name counts only where its first and last words are
//! capitalised, if its script has capitals. It does not count behind a qualifier such as "New" or "East", which makes
//! another name of it. Names that are as common as words or personal names do not count.
//!
//! Several places may have one name. The most populous counts if it has at least twice as many people as the next.
//! Otherwise, or without populations, the name is ambiguous and matches nothing.

use crate::words::stands_alone;
use meridian_model::caseless::{compose, fold_sign};
use meridian_model::sphere;
use std::collections::HashMap;

/// Max words of a name.
const WORDS_MAX: usize = 6;
/// Min letters of a name; shorter ones are too often other words.
const LETTERS_MIN: usize = 4;
/// Distance in metres below which two places of one name are one place.
const NEAR_M: f64 = 50_000.0;
/// Bytes of each text that are scanned.
const TEXT_BYTES_MAX: usize = 4_096;

/// Place names that are as common as words, first names or saints.
const COMMON: &str = "adelaide, alexandria, angel, angeles, austin, bath, battle, best, buffalo, bury, carolina, center, central, \
    charlotte, columbus, concord, cork, date, deal, derby, diego, douglas, eagle, essen, eugene, florence, franklin, georgia, \
    grace, hamilton, home, hope, hull, independence, irving, jackson, jordan, lancaster, lead, liberty, lincoln, logan, lourdes, \
    madison, male, many, march, marion, media, mercedes, mobile, most, nancy, nice, normal, orange, orlando, pearl, police, \
    price, reading, regina, rugby, saint george, saint john, salem, same, sandwich, santa, santos, shire, sofia, split, spring, \
    street, student, tours, troy, union, university, victoria, warren, wells, worms, young";

/// Words that make another name of the one that follows.
const QUALIFIERS: &str = "new, east, west, north, south, northern, southern, eastern, western, port, fort, saint, st, san, santa, \
    lake, mount, little";

/// A place and its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedPlace {
    /// The name as written.
    pub name: String,
    /// Longitude in degrees.
    pub lon: f64,
    /// Latitude in degrees.
    pub lat: f64,
    /// Its population, where known.
    pub people: Option<f64>,
}

/// The table of names.
#[derive(Debug, Default)]
pub struct Gazetteer {
    /// Places by phrase. `None` marks an ambiguous phrase, so that no shorter name is matched inside it.
    phrases: HashMap<String, Option<NamedPlace>>,
    /// Max words of the phrases that begin with a word.
    begins: HashMap<String, usize>,
}

impl Gazetteer {
    /// Builds a table of these places.
    pub fn new(places: impl IntoIterator<Item = NamedPlace>) -> Gazetteer {
        let mut of_name: HashMap<String, Vec<NamedPlace>> = HashMap::new();
        for place in places {
            if let Some(phrase) = phrase(&place.name) {
                of_name.entry(phrase).or_default().push(place);
            }
        }
        let mut gazetteer = Gazetteer::default();
        for (phrase, places) in of_name {
            let first = phrase.split(' ').next().unwrap_or_default().to_owned();
            let longest = gazetteer.begins.entry(first).or_default();
            *longest = (*longest).max(phrase.split(' ').count());
            let telling = if listed(COMMON, &phrase) { None } else { chosen(places) };
            gazetteer.phrases.insert(phrase, telling);
        }
        gazetteer
    }

    /// Returns whether no name in it identifies a place.
    pub fn is_empty(&self) -> bool {
        self.phrases.values().all(Option::is_none)
    }

    /// Returns the place that the texts name most often; among equals, the one named first.
    pub fn find<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Option<&NamedPlace> {
        let mut counts: Vec<(&NamedPlace, usize)> = Vec::new();
        for text in texts {
            let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
            for place in self.mentions(&words(text)) {
                match counts.iter_mut().find(|(known, _)| std::ptr::eq(*known, place)) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((place, 1)),
                }
            }
        }
        // Takes the first maximum; `max_by_key` would return the last.
        counts.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(place, _)| place)
    }

    /// Returns the places named, in order.
    fn mentions(&self, words: &[Word]) -> Vec<&NamedPlace> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < words.len() {
            let (taken, place) = self.at(words, at);
            found.extend(place);
            at += taken;
        }
        found
    }

    /// Returns the longest phrase that begins at a word: its length in words (1 if none) and its place.
    fn at(&self, words: &[Word], at: usize) -> (usize, Option<&NamedPlace>) {
        let longest = self.begins.get(&words[at].text).copied().unwrap_or(0).min(words.len() - at);
        for count in (1..=longest).rev() {
            let run = &words[at..at + count];
            let phrase = run.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
            let Some(place) = self.phrases.get(&phrase) else { continue };
            let is_name = run[0].capital && run[count - 1].capital;
            let qualified = at > 0 && words[at - 1].capital && listed(QUALIFIERS, &words[at - 1].text);
            return (count, place.as_ref().filter(|_| is_name && !qualified));
        }
        (1, None)
    }
}

/// Returns whether a comma-separated list holds a word.
fn listed(list: &str, word: &str) -> bool {
    list.split(',').any(|one| one.trim() == word)
}

/// Returns a name in its lookup form; `None` for a name that is never matched.
fn phrase(name: &str) -> Option<String> {
    let plain = |c: char| c.is_alphanumeric() || c.is_whitespace() || "-'’.,()/".contains(c);
    let words = words(name);
    let phrase = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    let letters = phrase.chars().filter(|c| c.is_alphabetic()).count();
    let few = if phrase.chars().any(stands_alone) { 2 } else { LETTERS_MIN };
    // A character that occurs in no name, such as a question mark for a lost letter, means broken data.
    (name.chars().all(plain) && (1..=WORDS_MAX).contains(&words.len()) && letters >= few).then_some(phrase)
}

/// Returns the place that a shared name identifies, if any.
fn chosen(mut places: Vec<NamedPlace>) -> Option<NamedPlace> {
    places.sort_by(|a, b| b.people.unwrap_or(0.0).total_cmp(&a.people.unwrap_or(0.0)));
    let mut places = places.into_iter();
    let first = places.next()?;
    let other = places.find(|p| sphere::distance_m(first.lon, first.lat, p.lon, p.lat) > NEAR_M);
    match other {
        None => Some(first),
        Some(other) => {
            let twice = first.people.unwrap_or(0.0) >= 2.0 * other.people.unwrap_or(f64::INFINITY);
            twice.then_some(first)
        }
    }
}

/// A word of a text.
#[derive(Debug, Clone, PartialEq)]
struct Word {
    /// The word in folded case.
    text: String,
    /// Whether its first character is not a lower-case letter.
    capital: bool,
}

/// Splits a text into words: runs of letters and digits; scripts without spaces split by character, as for keywords.
/// The English genitive is removed, so that London's becomes London.
fn words(text: &str) -> Vec<Word> {
    let mut out: Vec<Word> = Vec::new();
    let mut inside = false;
    let text = compose(text);
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        if matches!(sign, '\'' | '’') && inside {
            let mut ahead = signs.clone();
            if ahead.next().is_some_and(|c| matches!(c, 's' | 'S')) && !ahead.next().is_some_and(char::is_alphanumeric)
            {
                signs.next();
                inside = false;
            }
            continue;
        }
        if !sign.is_alphanumeric() {
            inside = false;
            continue;
        }
        let alone = stands_alone(sign);
        if alone || !inside {
            out.push(Word { text: String::new(), capital: !sign.is_lowercase() });
        }
        if let Some(word) = out.last_mut() {
            word.text.extend(fold_sign(sign));
        }
        inside = !alone;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(name: &str, lon: f64, people: Option<f64>) -> NamedPlace {
        NamedPlace { name: name.to_owned(), lon, lat: 0.0, people }
    }

    fn some() -> Gazetteer {
        let names = [
            "London",
            "New York",
            "York",
            "Washington,  D.C.",
            "N'Djamena",
            "Dar es Salaam",
            "東京",
            "Port-au-Prince",
            "Nice",
            "Ulm",
            "Chi?in?u",
            "São Paulo",
            "Saint John's",
            "Paris",
        ];
        Gazetteer::new(names.iter().enumerate().map(|(at, name)| place(name, at as f64, None)))
    }

    fn named(text: &str) -> Option<String> {
        some().find([text]).map(|place| place.name.clone())
    }

    #[test]
    fn names_are_found_as_names_stand_in_texts() {
        for (text, name) in [
            ("Flood in London, many without power", "London"),
            ("LONDON: flood", "London"),
            ("London's bridges", "London"),
            ("the Mayor of New York's office", "New York"),
            ("York is old", "York"),
            ("snow in Washington, D.C.", "Washington,  D.C."),
            ("N’Djamena under water", "N'Djamena"),
            ("a port near Dar es Salaam.", "Dar es Salaam"),
            ("昨日、東京で地震", "東京"),
            ("Port au Prince", "Port-au-Prince"),
            ("rain in São Paulo", "São Paulo"),
            ("from Paris to London and back to London", "London"),
            ("from Paris to London", "Paris"),
        ] {
            assert_eq!(named(text).as_deref(), Some(name), "{text}");
        }
        assert_eq!(some().find(["nothing here", "but Paris here"]).map(|p| p.name.as_str()), Some("Paris"));
    }

    #[test]
    fn what_is_no_name_is_none() {
        for text in [
            "",
            "flooded londoners",
            "flood in london",
            "Londonderry",
            "Nice weather",
            "Ulm",
            "new york",
            "New London",
            "East London",
            "St. Paris",
            "chi in u",
            "Chi In U",
            "dar es Salaam",
            "Saint John the Baptist",
            "Washington",
        ] {
            assert_eq!(named(text), None, "{text}");
        }
    }

    #[test]
    fn a_shared_name_means_the_far_greater_place_or_none() {
        let people = |n: f64| Some(n * 1e6);
        let table = Gazetteer::new([
            place("Springfield", 10.0, people(0.16)),
            place("Springfield", -90.0, people(0.17)),
            place("Birmingham", -87.0, people(0.2)),
            place("Birmingham", -2.0, people(1.1)),
            place("Victoria Falls", 20.0, None),
            place("Lisbon", -9.0, None),
            place("Lisbon", -9.1, None),
            place("Granada", -3.6, None),
            place("Granada", -86.0, None),
        ]);
        let lon = |text: &str| table.find([text]).map(|place| place.lon);
        assert_eq!(lon("in Springfield"), None);
        assert_eq!(lon("in Birmingham"), Some(-2.0));
        assert_eq!(lon("at Victoria Falls"), Some(20.0));
        assert_eq!(lon("in Lisbon"), Some(-9.0), "two points of one place");
        assert_eq!(lon("in Granada"), None);
        assert!(!table.is_empty() && Gazetteer::new([place("Nice", 7.0, None)]).is_empty());
    }

    /// The result of testing every name at every word.
    fn naive<'a>(names: &'a [String], text: &str) -> Option<&'a String> {
        let (words, mut at, mut found) = (words(text), 0, Vec::new());
        while at < words.len() {
            let here = |name: &&String| {
                let parts: Vec<String> = self::words(name).into_iter().map(|w| w.text).collect();
                let run = words.get(at..at + parts.len())?;
                run.iter()
                    .map(|w| &w.text)
                    .eq(&parts)
                    .then_some((parts.len(), run[0].capital && run[parts.len() - 1].capital))
            };
            let longest =
                names.iter().filter_map(|name| here(&name).map(|(n, is)| (n, is, name))).max_by_key(|(n, ..)| *n);
            if let Some((n, is_name, name)) = longest {
                found.extend(is_name.then_some(name));
                at += n;
            } else {
                at += 1;
            }
        }
        let count = |name: &String| found.iter().filter(|other| **other == name).count();
        found.iter().copied().reduce(|best, next| if count(next) > count(best) { next } else { best })
    }

    proptest! {
        #[test]
        fn the_table_finds_what_a_look_at_every_name_finds(
            names in prop::collection::btree_set("(Abcd|Bcde|Cdef)( (abcd|bcde|Cdef|Abcd)){0,2}", 1..8),
            text in "((Abcd|Bcde|Cdef|abcd|bcde|word)[ ,.-]{1,2}){0,14}",
        ) {
            // Names that differ only in case are one entry of the table; the first is kept.
            let mut seen = std::collections::HashSet::new();
            let names: Vec<String> = names.into_iter().filter(|n| seen.insert(n.to_lowercase())).collect();
            let table = Gazetteer::new(names.iter().enumerate().map(|(at, name)| place(name, at as f64, None)));
            let found = table.find([text.as_str()]).map(|place| &place.name);
            prop_assert_eq!(found, naive(&names, &text));
        }

        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,200}") {
            let _ = some().find([text.as_str()]);
        }
    }
}
