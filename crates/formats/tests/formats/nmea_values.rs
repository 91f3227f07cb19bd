//! Values of NMEA sentences: what a plain encoder writes, the reader gives back.

use crate::common::points::{number, place, read_points, text};
use crate::common::shown::value;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use meridian_formats::Format;
use meridian_model::FieldType;
use proptest::prelude::*;

const FIELDS: [(&str, FieldType); 9] = [
    ("time", FieldType::Time),
    ("mmsi", FieldType::Int),
    ("message", FieldType::Text),
    ("speed", FieldType::Float),
    ("course", FieldType::Float),
    ("heading", FieldType::Int),
    ("status", FieldType::Int),
    ("altitude", FieldType::Float),
    ("satellites", FieldType::Int),
];

/// A message of AIS; values are in the units of the message.
#[derive(Debug, Clone)]
struct Message {
    kind: i64,
    mmsi: i64,
    place: Option<(i64, i64)>,
    speed: Option<i64>,
    course: Option<i64>,
    heading: Option<i64>,
    status: Option<i64>,
    /// Time of a base station, in seconds since 1970.
    clock: Option<i64>,
    /// Where the log has a time, the time as text, and in microseconds.
    logged: (u8, String, i64),
    /// Content of the bits that no test reads.
    noise: u64,
}

/// Bits of a message, the most significant of each number first.
struct Bits {
    bits: Vec<bool>,
    noise: u64,
}

impl Bits {
    fn put(&mut self, value: i64, width: u32) -> &mut Bits {
        self.bits.extend((0..width).rev().map(|at| (value >> at) & 1 == 1));
        self
    }

    fn other(&mut self, width: u32) -> &mut Bits {
        for _ in 0..width {
            self.noise = self.noise.rotate_left(1);
            self.bits.push(self.noise & 1 == 1);
        }
        self
    }

    /// Returns the payload in its armour.
    fn armoured(&self) -> String {
        let character = |six: &[bool]| {
            let six = six.iter().fold(0u8, |number, bit| number * 2 + u8::from(*bit));
            char::from(if six < 40 { six + 48 } else { six + 56 })
        };
        assert_eq!(self.bits.len() % 6, 0);
        self.bits.chunks(6).map(character).collect()
    }
}

fn checked(start: char, body: &str) -> String {
    let sum = body.bytes().fold(0u8, |sum, byte| sum ^ byte);
    format!("{start}{body}*{sum:02X}")
}

impl Message {
    /// Units of a degree.
    fn unit(kind: i64) -> i64 {
        if kind == 27 { 600 } else { 600_000 }
    }

    fn payload(&self) -> String {
        let long_range = self.kind == 27;
        let (lon, lat) = self.place.unwrap_or((181 * Message::unit(self.kind), 91 * Message::unit(self.kind)));
        let speed = self.speed.unwrap_or(if long_range { 63 } else { 1023 });
        let course = self.course.unwrap_or(if long_range { 511 } else { 3600 });
        let (heading, status) = (self.heading.unwrap_or(511), self.status.unwrap_or(15));
        let mut bits = Bits { bits: Vec::new(), noise: self.noise };
        bits.put(self.kind, 6).other(2).put(self.mmsi, 30);
        match self.kind {
            4 => {
                let [year, month, day, hour, minute, second] = civil(self.clock);
                bits.put(year, 14).put(month, 4).put(day, 5).put(hour, 5).put(minute, 6).put(second, 6);
                bits.other(1).put(lon, 28).put(lat, 27).other(34);
            }
            18 => {
                bits.other(8).put(speed, 10).other(1).put(lon, 28).put(lat, 27);
                bits.put(course, 12).put(heading, 9).other(35);
            }
            27 => {
                bits.other(2).put(status, 4).put(lon, 18).put(lat, 17).put(speed, 6).put(course, 9).other(2);
            }
            _ => {
                bits.put(status, 4).other(8).put(speed, 10).other(1).put(lon, 28).put(lat, 27);
                bits.put(course, 12).put(heading, 9).other(31);
            }
        }
        bits.armoured()
    }

    fn line(&self) -> String {
        let sentence = checked('!', &format!("AIVDM,1,1,,A,{},0", self.payload()));
        let (form, time, _) = &self.logged;
        match form {
            0 => sentence,
            1 => checked('\\', &format!("c:{time}")) + "\\" + &sentence,
            2 => format!("{time} {sentence}"),
            _ => format!("{sentence},{time}"),
        }
    }

    fn time(&self) -> Option<i64> {
        let (form, _, micros) = self.logged;
        let own = self.clock.filter(|_| self.kind == 4).map(|seconds| seconds * 1_000_000);
        if form == 0 { own } else { Some(micros) }
    }

    /// Returns the expected value of each field.
    fn expected(&self) -> [String; 9] {
        let tenths = |n: i64| if self.kind == 27 { n as f64 } else { n as f64 / 10.0 };
        let moves = self.kind != 4;
        [
            number(self.time()),
            self.mmsi.to_string(),
            text(&self.kind.to_string()),
            number(self.speed.filter(|_| moves).map(tenths)),
            number(self.course.filter(|_| moves).map(tenths)),
            number(self.heading.filter(|_| moves && self.kind != 27)),
            number(self.status.filter(|_| moves && self.kind != 18)),
            "null".to_owned(),
            "null".to_owned(),
        ]
    }
}

/// Year to second; without a time the codes that mean so.
fn civil(seconds: Option<i64>) -> [i64; 6] {
    let Some(seconds) = seconds else { return [0, 0, 0, 24, 60, 60] };
    let at = Timestamp::from_second(seconds).unwrap().to_zoned(TimeZone::UTC);
    let date = [i64::from(at.year()), i64::from(at.month()), i64::from(at.day())];
    let time = [i64::from(at.hour()), i64::from(at.minute()), i64::from(at.second())];
    [date[0], date[1], date[2], time[0], time[1], time[2]]
}

/// Numbers of a range, and often its ends.
fn ends(min: i64, max: i64) -> impl Strategy<Value = i64> {
    prop_oneof![2 => min..=max, 1 => Just(min), 1 => Just(max)]
}

fn maybe(max: i64) -> impl Strategy<Value = Option<i64>> {
    prop::option::weighted(0.8, ends(0, max))
}

/// Degrees up to `max` in units, with the antimeridian or the pole, and the numbers beside zero.
fn degrees(max: i64) -> impl Strategy<Value = i64> {
    prop_oneof![-max..=max, prop::sample::select(vec![-max, 1 - max, -1, 0, 1, max - 1, max])]
}

fn positions(unit: i64) -> impl Strategy<Value = (i64, i64)> {
    (degrees(180 * unit), degrees(90 * unit))
}

/// Times of a log, in seconds or milliseconds.
fn logged() -> impl Strategy<Value = (u8, String, i64)> {
    let seconds = ends(0, 99_999_999_999).prop_map(|n| (n.to_string(), n * 1_000_000));
    let millis = ends(100_000_000_000, 99_999_999_999_999).prop_map(|n| (n.to_string(), n * 1_000));
    (0..4u8, prop_oneof![seconds, millis]).prop_map(|(form, (text, micros))| (form, text, micros))
}

fn message() -> impl Strategy<Value = Message> {
    prop::sample::select(vec![1i64, 2, 3, 4, 18, 27]).prop_flat_map(|kind| {
        let (speed, course) = if kind == 27 { (62, 359) } else { (1022, 3599) };
        let place = prop::option::weighted(0.8, positions(Message::unit(kind)));
        // From the first year that a message can name to the last instant of the calendar that writes it here.
        let clock = prop::option::weighted(0.8, ends(-62_135_596_800, 253_402_207_200));
        let motion = (maybe(speed), maybe(course), maybe(359), maybe(14));
        (ends(0, 999_999_999), place, motion, clock, logged(), any::<u64>()).prop_map(
            move |(mmsi, place, (speed, course, heading, status), clock, logged, noise)| Message {
                kind,
                mmsi,
                place,
                speed,
                course,
                heading,
                status,
                clock,
                logged,
                noise,
            },
        )
    })
}

/// A fix of the receiver: its time in hundredths of a second, and its place in ten-thousandths of a minute.
#[derive(Debug, Clone)]
struct Fix {
    hundredths: i64,
    place: (i64, i64),
    /// Tenths of a knot, and of a degree.
    speed: Option<i64>,
    course: Option<i64>,
    /// Tenths of a metre, and satellites.
    height: Option<(i64, i64)>,
}

impl Fix {
    fn lines(&self) -> String {
        let at = Timestamp::from_second(self.hundredths.div_euclid(100)).unwrap();
        let of_day = format!("{}.{:02}", at.strftime("%H%M%S"), self.hundredths.rem_euclid(100));
        let minutes = |n: i64| format!("{:02}.{:04}", n % 600_000 / 10_000, n % 10_000);
        let (x, y) = (self.place.0.abs(), self.place.1.abs());
        let east = if self.place.0 < 0 { 'W' } else { 'E' };
        let north = if self.place.1 < 0 { 'S' } else { 'N' };
        let place = format!("{:02}{},{north},{:03}{},{east}", y / 600_000, minutes(y), x / 600_000, minutes(x));
        let tenths = |n: Option<i64>| n.map_or_else(String::new, |n| format!("{:05.1}", n as f64 / 10.0));
        let height = self.height.map_or_else(String::new, |(altitude, satellites)| {
            let altitude = altitude as f64 / 10.0;
            checked('$', &format!("GPGGA,{of_day},{place},1,{satellites:02},0.9,{altitude:.1},M,46.9,M,,")) + "\r\n"
        });
        let (speed, course, day) = (tenths(self.speed), tenths(self.course), at.strftime("%d%m%y"));
        height + &checked('$', &format!("GPRMC,{of_day},A,{place},{speed},{course},{day},,,A")) + "\r\n"
    }

    fn expected(&self) -> [String; 9] {
        let tenths = |n: i64| n as f64 / 10.0;
        [
            (self.hundredths * 10_000).to_string(),
            "null".to_owned(),
            text("RMC"),
            number(self.speed.map(tenths)),
            number(self.course.map(tenths)),
            "null".to_owned(),
            "null".to_owned(),
            number(self.height.map(|(altitude, _)| tenths(altitude))),
            number(self.height.map(|(_, satellites)| satellites)),
        ]
    }
}

fn fix() -> impl Strategy<Value = Fix> {
    // Two digits name the years 1980 to 2079.
    let time = ends(31_553_280_000, 347_129_279_999);
    let height = prop::option::of((ends(-4_000, 90_000), ends(0, 99)));
    (time, positions(600_000), maybe(9_999), maybe(3_599), height)
        .prop_map(|(hundredths, place, speed, course, height)| Fix { hundredths, place, speed, course, height })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn messages_of_ais_are_read_as_they_were_encoded(messages in prop::collection::vec(message(), 1..8)) {
        let log: String = messages.iter().map(|message| message.line() + "\n").collect();
        let batch = read_points(Format::Nmea, log.clone().into_bytes(), &FIELDS);
        let batch = batch.map_err(|e| TestCaseError::fail(format!("{e}\n{log}")))?;
        prop_assert_eq!(batch.rows(), messages.len());
        for (row, message) in messages.iter().enumerate() {
            let unit = Message::unit(message.kind) as f64;
            let expected = message.place.map(|(lon, lat)| (lon as f64 / unit, lat as f64 / unit));
            prop_assert_eq!(place(&batch, row), expected, "{}", message.line());
            for ((name, _), expected) in FIELDS.iter().zip(message.expected()) {
                prop_assert_eq!(value(&batch, name, row), expected, "{} of {}", name, message.line());
            }
        }
    }

    #[test]
    fn fixes_of_the_receiver_are_read_as_they_were_encoded(fixes in prop::collection::vec(fix(), 1..8)) {
        let log: String = fixes.iter().map(Fix::lines).collect();
        let batch = read_points(Format::Nmea, log.clone().into_bytes(), &FIELDS);
        let batch = batch.map_err(|e| TestCaseError::fail(format!("{e}\n{log}")))?;
        prop_assert_eq!(batch.rows(), fixes.len());
        for (row, fix) in fixes.iter().enumerate() {
            let (lon, lat) = place(&batch, row).unwrap();
            let (x, y) = (fix.place.0 as f64 / 600_000.0, fix.place.1 as f64 / 600_000.0);
            // The reader rounds to nine decimals.
            prop_assert!((lon - x).abs() < 1e-9 && (lat - y).abs() < 1e-9, "{} {} of {}", lon, lat, fix.lines());
            for ((name, _), expected) in FIELDS.iter().zip(fix.expected()) {
                prop_assert_eq!(value(&batch, name, row), expected, "{} of {}", name, fix.lines());
            }
        }
    }
}
