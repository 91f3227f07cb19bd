//! One sentence: its fields, its checksum, and its reception time.

use crate::instant;
use crate::values::{epoch, float};
use jiff::tz::TimeZone;
use meridian_model::Invalid;
use meridian_model::civil::{civil_from_days, days_from_civil};
use meridian_model::error::shorten;

/// A sentence, and its time in the log.
pub(super) struct Sentence<'a> {
    fields: Vec<&'a str>,
    /// Reception time, in microseconds since 1970.
    pub(super) time: Option<i64>,
}

/// A sentence of AIS, which is a message or a part of one.
pub(super) struct Part<'a> {
    pub(super) total: u8,
    pub(super) number: u8,
    pub(super) sequence: &'a str,
    pub(super) channel: &'a str,
    pub(super) payload: &'a str,
}

/// A position of the receiver itself.
pub(super) struct Fix {
    pub(super) time: i64,
    /// The time of day as written, which identifies other sentences of the same fix.
    pub(super) of_day: String,
    pub(super) lon: f64,
    pub(super) lat: f64,
    /// Speed in knots.
    pub(super) speed: Option<f64>,
    /// Course in degrees from north.
    pub(super) course: Option<f64>,
}

/// Data of another sentence about a fix.
pub(super) struct Height {
    /// The time of day as written.
    pub(super) of_day: String,
    /// Metres.
    pub(super) altitude: Option<f64>,
    pub(super) satellites: Option<i64>,
}

/// Seconds, milliseconds and microseconds since 1970 are distinguished by magnitude. This bound is the year 5138 in
/// seconds, and 1973 in milliseconds.
const SECONDS_MAX: i64 = 100_000_000_000;
const MILLIS_MAX: i64 = 100_000_000_000_000;

impl<'a> Sentence<'a> {
    /// Reads a line; `None` for a blank line or a comment.
    pub(super) fn parse(line: &'a str) -> Result<Option<Sentence<'a>>, Invalid> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let (mut time, mut rest) = (None, line);
        // A block of tags: `\s:station,c:1641234567*5A\`.
        if let Some(after) = line.strip_prefix('\\') {
            let (tags, sentence) =
                after.split_once('\\').ok_or_else(|| Invalid::new("the block of tags has no end"))?;
            let tags = tags.split_once('*').map_or(tags, |(tags, _)| tags);
            let received = tags.split(',').find_map(|tag| tag.strip_prefix("c:"));
            time = received.map(|text| number(text).ok_or_else(|| Invalid::field("time", unread(text)))).transpose()?;
            rest = sentence;
        }
        let Some(start) = rest.find(['!', '$']) else {
            return Err(Invalid::new(format!(
                "{:?} is no sentence: expected one that begins with ! or $",
                shorten(line)
            )));
        };
        let (before, sentence) = rest.split_at(start);
        let (body, after) = sentence[1..].split_once('*').unwrap_or((&sentence[1..], ""));
        if let Some(sum) = after.get(..2) {
            check(body, sum)?;
        }
        // Loggers without tags write the time before or after the sentence.
        let aside = |text: &str| {
            let text = text.trim_matches([',', ' ', '\t', ';', '|', '[', ']']);
            (!text.is_empty()).then(|| number(text).or_else(|| instant::parse(text, Some(&TimeZone::UTC)).ok()))?
        };
        let time = time.or_else(|| aside(before)).or_else(|| aside(after.get(2..).unwrap_or("")));
        Ok(Some(Sentence { fields: body.split(',').collect(), time }))
    }

    /// Returns the type, without the two letters of the talker.
    pub(super) fn kind(&self) -> &'a str {
        self.fields[0].get(2..).unwrap_or("")
    }

    fn field(&self, at: usize) -> &'a str {
        self.fields.get(at).copied().unwrap_or("")
    }

    fn number(&self, at: usize, name: &str) -> Result<Option<f64>, Invalid> {
        let text = self.field(at);
        let wrong = || Invalid::field(name, format!("{:?} where a number was expected", shorten(text)));
        (!text.is_empty()).then(|| float(text).filter(|x| x.is_finite()).ok_or_else(wrong)).transpose()
    }

    /// Returns the part of an AIS message: `!AIVDM,2,1,3,B,payload,0`.
    pub(super) fn part(&self) -> Result<Part<'a>, Invalid> {
        let digit = |at: usize| self.field(at).parse::<u8>().ok().filter(|n| (1..=9).contains(n));
        let numbers = digit(1).zip(digit(2)).filter(|(total, number)| number <= total);
        let (total, number) =
            numbers.ok_or_else(|| Invalid::new("the sentence does not say which part of a message it is"))?;
        Ok(Part { total, number, sequence: self.field(3), channel: self.field(4), payload: self.field(5) })
    }

    /// Returns the fix of an RMC sentence; `None` if the receiver had none.
    pub(super) fn fix(&self) -> Result<Option<Fix>, Invalid> {
        let place = self.degrees(5, 6, "lon")?.zip(self.degrees(3, 4, "lat")?);
        let (of_day, day) = (self.field(1), self.field(9));
        let (Some((lon, lat)), "A") = (place, self.field(2)) else { return Ok(None) };
        if of_day.is_empty() || day.is_empty() {
            return Ok(None);
        }
        let time = instant_of(of_day, day).ok_or_else(|| {
            Invalid::field("time", format!("{:?} on {:?}: expected hhmmss on ddmmyy", shorten(of_day), shorten(day)))
        })?;
        let (speed, course) = (self.number(7, "speed")?, self.number(8, "course")?);
        Ok(Some(Fix { time, of_day: of_day.to_owned(), lon, lat, speed, course }))
    }

    /// Returns height and satellites of a GGA sentence, with its time of day.
    pub(super) fn height(&self) -> Result<Height, Invalid> {
        let satellites = self.number(7, "satellites")?.map(|n| n as i64);
        Ok(Height { of_day: self.field(1).to_owned(), altitude: self.number(9, "altitude")?, satellites })
    }

    /// Returns degrees from `dddmm.mmmm` and a letter.
    fn degrees(&self, at: usize, side: usize, name: &str) -> Result<Option<f64>, Invalid> {
        let Some(value) = self.number(at, name)? else { return Ok(None) };
        let whole = (value / 100.0).trunc();
        let degrees = whole + (value - whole * 100.0) / 60.0;
        // Rounded to a tenth of a millimetre: the division leaves noise below that.
        let degrees = (degrees * 1e9).round() / 1e9;
        match self.field(side) {
            "N" | "E" => Ok(Some(degrees)),
            "S" | "W" => Ok(Some(-degrees)),
            other => Err(Invalid::field(name, format!("{:?} where N, S, E or W was expected", shorten(other)))),
        }
    }
}

fn unread(text: &str) -> String {
    format!("{:?} where a number of seconds since 1970 was expected", shorten(text))
}

/// Converts a number since 1970, in the unit given by its magnitude, to microseconds.
fn number(text: &str) -> Option<i64> {
    if let Some((whole, fraction)) = text.split_once('.') {
        let micros = format!("{fraction:0<6}");
        let micros: i64 = micros.get(..6)?.parse().ok()?;
        return number(whole)?.checked_add(micros);
    }
    let n: i64 = text.parse().ok()?;
    let unit = match n {
        n if n < SECONDS_MAX => 1_000_000,
        n if n < MILLIS_MAX => 1_000,
        _ => 1,
    };
    epoch(n, unit).ok()
}

/// Returns microseconds since 1970 for `hhmmss.ss` on `ddmmyy`.
fn instant_of(of_day: &str, day: &str) -> Option<i64> {
    let two = |text: &str, at: usize| text.get(at..at + 2)?.parse::<i64>().ok();
    let (year, month, date) = (two(day, 4)?, two(day, 2)?, two(day, 0)?);
    // Two-digit year: receivers from before 1980 had no such sentences.
    let year = if year < 80 { 2000 + year } else { 1900 + year };
    let days = days_from_civil(year, month, date);
    let (hour, minute, second) = (two(of_day, 0)?, two(of_day, 2)?, two(of_day, 4)?);
    if civil_from_days(days) != (year, month, date) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let fraction = of_day.get(6..).and_then(|rest| rest.strip_prefix('.')).unwrap_or("");
    let micros: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    Some((days * 86_400 + hour * 3600 + minute * 60 + second.min(59)) * 1_000_000 + micros)
}

/// Verifies the checksum of a sentence.
fn check(body: &str, sum: &str) -> Result<(), Invalid> {
    let found = body.bytes().fold(0, |sum, byte| sum ^ byte);
    match u8::from_str_radix(sum, 16) {
        Ok(said) if said == found => Ok(()),
        _ => Err(Invalid::new(format!("the checksum is {}: expected {found:02X}", shorten(sum)))),
    }
}
