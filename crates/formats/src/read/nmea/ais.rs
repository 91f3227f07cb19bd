//! Messages of AIS (ITU-R M.1371): positions, and data that ships report about themselves.

use meridian_model::Invalid;
use meridian_model::civil::{civil_from_days, days_from_civil};

/// Content of one message or sentence; values marked as not available are absent.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    /// The type: an AIS number, or the name of a sentence.
    pub(super) message: String,
    pub(super) mmsi: Option<i64>,
    /// Microseconds since 1970.
    pub(super) time: Option<i64>,
    /// Longitude and latitude.
    pub(super) place: Option<(f64, f64)>,
    /// Speed in knots.
    pub(super) speed: Option<f64>,
    /// Course in degrees from north.
    pub(super) course: Option<f64>,
    pub(super) heading: Option<i64>,
    pub(super) status: Option<i64>,
    /// Metres.
    pub(super) altitude: Option<f64>,
    pub(super) satellites: Option<i64>,
    pub(super) name: Option<String>,
    pub(super) callsign: Option<String>,
    pub(super) imo: Option<i64>,
    pub(super) ship_type: Option<i64>,
    /// Metres.
    pub(super) draught: Option<f64>,
    pub(super) destination: Option<String>,
    pub(super) aid_type: Option<i64>,
}

/// The bits of a payload, six in each value.
pub(super) struct PayloadBits(Vec<u8>);

impl PayloadBits {
    /// Decodes the armour of a payload: each character stands for six bits.
    pub(super) fn of(payload: &str) -> Result<PayloadBits, Invalid> {
        let six = |byte: u8| match byte {
            b'0'..=b'W' => Ok(byte - b'0'),
            b'`'..=b'w' => Ok(byte - b'0' - 8),
            _ => Err(Invalid::new(format!("{:?} is no character of an AIS payload", char::from(byte)))),
        };
        Ok(PayloadBits(payload.bytes().map(six).collect::<Result<_, _>>()?))
    }

    fn bits(&self) -> usize {
        self.0.len() * 6
    }

    /// Reads a number of at most 32 bits; bits past the end are zeros, as in truncated messages.
    fn number(&self, from: usize, bits: usize) -> i64 {
        (from..from + bits).fold(0, |number, at| {
            let six = self.0.get(at / 6).copied().unwrap_or(0);
            number << 1 | i64::from(six >> (5 - at % 6) & 1)
        })
    }

    fn signed(&self, from: usize, bits: usize) -> i64 {
        let number = self.number(from, bits);
        // Two's complement, in fields of any width.
        if number >> (bits - 1) & 1 == 1 { number - (1 << bits) } else { number }
    }

    /// Reads a text of six-bit characters, up to its end mark and without trailing blanks.
    fn text(&self, from: usize, characters: usize) -> Option<String> {
        let text: String = (0..characters)
            .map(|i| self.number(from + 6 * i, 6) as u8)
            .take_while(|six| *six != 0)
            .map(|six| char::from(if six < 32 { six + 64 } else { six }))
            .collect();
        let text = text.trim_end();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn some(&self, from: usize, bits: usize, none: i64) -> Option<i64> {
        Some(self.number(from, bits)).filter(|n| *n != none)
    }

    fn tenths(&self, from: usize, bits: usize, none: i64) -> Option<f64> {
        self.some(from, bits, none).map(|n| n as f64 / 10.0)
    }

    /// Reads a position of 28 and 27 bits, in ten-thousandths of a minute.
    fn place(&self, from: usize) -> Option<(f64, f64)> {
        let (lon, lat) = (self.signed(from, 28), self.signed(from + 28, 27));
        // 181 and 91 degrees stand for a position that is not available.
        (lon != 181 * 600_000 && lat != 91 * 600_000).then(|| (lon as f64 / 600_000.0, lat as f64 / 600_000.0))
    }
}

/// Bits up to the end of the position, or of the name, of each type: a shorter message is truncated.
fn bits_min(kind: i64) -> usize {
    match kind {
        1..=3 | 9 => 116,
        4 => 134,
        5 => 302,
        18 | 19 => 112,
        21 => 219,
        24 => 40,
        27 => 90,
        _ => 0,
    }
}

/// Returns whether a message may be an event, by the first character of its payload, which holds its type.
pub(super) fn may_be_read(payload: &str) -> bool {
    let first = payload.get(..1).map_or("", |first| first);
    PayloadBits::of(first).is_ok_and(|bits| bits_min(bits.number(0, 6)) > 0)
}

/// Reads a message; `None` for a type without a position or a name.
pub(super) fn read(bits: &PayloadBits) -> Result<Option<Report>, Invalid> {
    let kind = bits.number(0, 6);
    // Type, repeat indicator and MMSI, which every message begins with, take 38 bits.
    if bits.bits() < 38 || bits.bits() < bits_min(kind) {
        return Err(Invalid::new(format!("a message of type {kind} in {} bits: was it cut off?", bits.bits())));
    }
    let mut report = Report { message: kind.to_string(), mmsi: Some(bits.number(8, 30)), ..Report::default() };
    match kind {
        1..=3 => {
            report.status = bits.some(38, 4, 15);
            motion(bits, 50, &mut report);
        }
        4 => {
            report.time = clock(bits);
            report.place = bits.place(79);
        }
        5 => {
            report.imo = bits.some(40, 30, 0);
            report.callsign = bits.text(70, 7);
            report.name = bits.text(112, 20);
            report.ship_type = bits.some(232, 8, 0);
            report.draught = bits.tenths(294, 8, 0);
            report.destination = bits.text(302, 20);
        }
        9 => {
            report.altitude = bits.some(38, 12, 4095).map(|n| n as f64);
            report.speed = bits.some(50, 10, 1023).map(|n| n as f64);
            report.place = bits.place(61);
            report.course = bits.tenths(116, 12, 3600);
        }
        18 | 19 => {
            motion(bits, 46, &mut report);
            if kind == 19 {
                report.name = bits.text(143, 20);
                report.ship_type = bits.some(263, 8, 0);
            }
        }
        21 => {
            report.aid_type = bits.some(38, 5, 0);
            report.name = bits.text(43, 20);
            report.place = bits.place(164);
        }
        // Part A has the name, and part B what follows.
        24 if bits.number(38, 2) == 0 => report.name = bits.text(40, 20),
        24 => {
            report.ship_type = bits.some(40, 8, 0);
            report.callsign = bits.text(90, 7);
        }
        27 => {
            report.status = bits.some(40, 4, 15);
            let (lon, lat) = (bits.signed(44, 18), bits.signed(62, 17));
            report.place = (lon != 181 * 600 && lat != 91 * 600).then(|| (lon as f64 / 600.0, lat as f64 / 600.0));
            report.speed = bits.some(79, 6, 63).map(|n| n as f64);
            report.course = bits.some(85, 9, 511).map(|n| n as f64);
        }
        _ => return Ok(None),
    }
    Ok(Some(report))
}

/// Reads speed, position, course and heading, which several types have in this order.
fn motion(bits: &PayloadBits, from: usize, report: &mut Report) {
    report.speed = bits.tenths(from, 10, 1023);
    report.place = bits.place(from + 11);
    report.course = bits.tenths(from + 66, 12, 3600);
    report.heading = bits.some(from + 78, 9, 511);
}

/// Returns the time of a base station, in microseconds since 1970.
fn clock(bits: &PayloadBits) -> Option<i64> {
    let (year, month, day) = (bits.number(38, 14), bits.number(52, 4), bits.number(56, 5));
    let (hour, minute, second) = (bits.number(61, 5), bits.number(66, 6), bits.number(72, 6));
    // A day that its month lacks converts to another date, which the way back shows. Absent values are out of range as
    // well.
    let days = days_from_civil(year, month, day);
    let there = year > 0 && civil_from_days(days) == (year, month, day) && hour < 24 && minute < 60 && second < 60;
    there.then_some((days * 86_400 + hour * 3600 + minute * 60 + second) * 1_000_000)
}
