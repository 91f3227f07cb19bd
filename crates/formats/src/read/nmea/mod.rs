//! NMEA 0183: positions of ships over AIS, and of the receiver itself (RMC), one sentence per line.

mod ais;
mod parts;
mod sentence;

use crate::error::Fault;
use crate::input::{Input, utf8};
use crate::options::ReadOptions;
use crate::read::table::{Cell, Kind, Row, Source};
use crate::wkb_out::{self, Position};
use ais::{PayloadBits, Report};
use meridian_model::Invalid;
use parts::Parts;
use sentence::{Fix, Height, Sentence};
use std::io::Read;

const COLUMNS: [(&str, Kind); 17] = [
    ("geometry", Kind::Shape),
    ("time", Kind::Time),
    ("mmsi", Kind::Int),
    ("message", Kind::Text),
    ("speed", Kind::Float),
    ("course", Kind::Float),
    ("heading", Kind::Int),
    ("status", Kind::Int),
    ("altitude", Kind::Float),
    ("satellites", Kind::Int),
    ("name", Kind::Text),
    ("callsign", Kind::Text),
    ("imo", Kind::Int),
    ("ship_type", Kind::Int),
    ("draught", Kind::Float),
    ("destination", Kind::Text),
    ("aid_type", Kind::Int),
];

/// Events of a log of sentences.
pub(crate) struct Nmea {
    input: Input,
    line: u64,
    parts: Parts,
    /// The height of the last fix.
    height: Option<Height>,
}

impl Nmea {
    pub(crate) fn new(source: Box<dyn Read + Send>, options: &ReadOptions) -> Nmea {
        Nmea { input: Input::new(source, options), line: 0, parts: Parts::default(), height: None }
    }

    /// Returns the report in a sentence; `None` if it has none, or waits for others.
    fn report(&mut self, text: &str) -> Result<Option<(Option<i64>, Report)>, Invalid> {
        let Some(sentence) = Sentence::parse(text)? else { return Ok(None) };
        match sentence.kind() {
            "VDM" | "VDO" => self.vessel(&sentence),
            "GGA" => {
                self.height = Some(sentence.height()?);
                Ok(None)
            }
            "RMC" => {
                let Some(fix) = sentence.fix()? else { return Ok(None) };
                Ok(Some(self.own(fix)))
            }
            // Satellites in view, depths and winds are not positions.
            _ => Ok(None),
        }
    }

    fn own(&mut self, fix: Fix) -> (Option<i64>, Report) {
        let height = self.height.take().filter(|height| height.of_day == fix.of_day);
        let (altitude, satellites) = height.map_or((None, None), |height| (height.altitude, height.satellites));
        let report = Report {
            message: "RMC".to_owned(),
            place: Some((fix.lon, fix.lat)),
            speed: fix.speed,
            course: fix.course,
            altitude,
            satellites,
            ..Report::default()
        };
        (Some(fix.time), report)
    }

    fn vessel(&mut self, sentence: &Sentence<'_>) -> Result<Option<(Option<i64>, Report)>, Invalid> {
        let part = sentence.part()?;
        if part.total == 1 {
            let report = ais::read(&PayloadBits::of(part.payload)?)?;
            return Ok(report.map(|report| (sentence.time, report)));
        }
        let Some((payload, time)) = self.parts.add(&part, sentence.time, self.line)? else { return Ok(None) };
        let report = ais::read(&PayloadBits::of(&payload)?)?;
        Ok(report.map(|report| (time, report)))
    }
}

impl Source for Nmea {
    fn open(&mut self) -> Result<Vec<(String, Kind)>, Fault> {
        Ok(COLUMNS.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect())
    }

    fn next(&mut self, row: &mut Row) -> Result<bool, Fault> {
        loop {
            if let Some(lost) = self.parts.lost() {
                return Err(Fault::Event(lost));
            }
            self.line += 1;
            let Some(range) = self.input.line(self.line)? else {
                self.parts.end();
                return self.parts.lost().map_or(Ok(false), |lost| Err(Fault::Event(lost)));
            };
            let text = utf8(self.input.bytes(range)).map(str::to_owned);
            let line = self.line;
            let report = text.and_then(|text| self.report(&text)).map_err(|e| Fault::Event(e.at_line(line)))?;
            if let Some((time, report)) = report {
                put(time, &report, row)?;
                return Ok(true);
            }
        }
    }
}

fn put(time: Option<i64>, report: &Report, row: &mut Row) -> Result<(), Invalid> {
    if let Some((x, y)) = report.place {
        row.set(0, Cell::Shape(&wkb_out::Parts::Point(Position { x, y, z: None }).wkb()))?;
    }
    let int = |n: Option<i64>| n.map(Cell::Int);
    let float = |x: Option<f64>| x.map(Cell::Float);
    let cells = [
        // A base station sends the time itself.
        time.or(report.time).map(Cell::Time),
        int(report.mmsi),
        Some(Cell::Text(&report.message)),
        float(report.speed),
        float(report.course),
        int(report.heading),
        int(report.status),
        float(report.altitude),
        int(report.satellites),
        report.name.as_deref().map(Cell::Text),
        report.callsign.as_deref().map(Cell::Text),
        int(report.imo),
        int(report.ship_type),
        float(report.draught),
        report.destination.as_deref().map(Cell::Text),
        int(report.aid_type),
    ];
    for (i, cell) in cells.into_iter().enumerate() {
        cell.map_or(Ok(()), |cell| row.set(i + 1, cell))?;
    }
    Ok(())
}
