//! Lines from positions: consecutive rows of one object become one event.

use meridian_formats::{BatchLimits, EventReader, ReadError, Report};
use meridian_model::builder::Value;
use meridian_model::geometry::cut_at_antimeridian;
use meridian_model::{
    Batch, BatchBuilder, Field, FieldColumn, FieldType, GeometryType, IdRole, Invalid, Schema, TimeRole,
};
use std::sync::Arc;

/// Returns the schema of the lines made from positions of `base`.
///
/// Each line has the object's name, `points` (the number of positions) and, if positions have a time, `start` and
/// `end`. Numbers of the positions become `NAME_min` and `NAME_max`. Other fields keep their first value under the same
/// name.
pub fn track_schema(base: &Schema, track: &str) -> Result<Schema, Invalid> {
    let object = object_field(base, track)?;
    if base.geometry != Some(GeometryType::Point) {
        return Err(Invalid::field("--track", "only points can be joined to lines, and this input has none"));
    }
    let instant = match base.time {
        TimeRole::Interval { .. } => {
            return Err(Invalid::field("--track", "these positions have intervals: expected one instant each"));
        }
        TimeRole::Instant(i) => Some(i),
        TimeRole::None => None,
    };
    let field = |name: &str, kind, required| Field { name: name.to_owned(), kind, required, title: None };
    let mut fields = vec![field(track, base.fields[object].kind, true)];
    let time = if instant.is_some() {
        fields.push(field("start", FieldType::Time, true));
        fields.push(field("end", FieldType::Time, true));
        TimeRole::Interval { start: 1, end: 2 }
    } else {
        TimeRole::None
    };
    fields.push(field("points", FieldType::Int, true));
    for (i, f) in base.fields.iter().enumerate() {
        if i == object || Some(i) == instant {
            continue;
        }
        if f.kind.is_numeric() {
            fields.push(field(&format!("{}_min", f.name), f.kind, false));
            fields.push(field(&format!("{}_max", f.name), f.kind, false));
        } else {
            fields.push(field(&f.name, f.kind, false));
        }
    }
    let schema = Schema {
        fields,
        // A line that crosses the antimeridian has several parts.
        geometry: Some(GeometryType::MultiLine),
        time,
        // A line is made from many positions, so it has none of their ids.
        id: IdRole::Made,
        id_name: "id".to_owned(),
        object: Some(0),
        ..base.clone()
    };
    schema.validate()?;
    Ok(schema)
}

fn object_field(base: &Schema, track: &str) -> Result<usize, Invalid> {
    let names = || base.fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", ");
    let index = base.field_index(track).ok_or_else(|| {
        Invalid::field("--track", format!("{track:?} is not a field of this input: expected one of {}", names()))
    })?;
    match base.fields[index].kind {
        // Only types with exact equality: neighbours are compared by value.
        FieldType::Text | FieldType::Int => Ok(index),
        other => {
            Err(Invalid::field("--track", format!("{track:?} is a {}: expected a name or a number", other.word())))
        }
    }
}

/// Reads positions and returns lines.
pub struct TrackReader {
    positions: Box<dyn EventReader>,
    base: Arc<Schema>,
    builder: BatchBuilder,
    object: usize,
    instant: Option<usize>,
    open: Option<Track>,
    ended: bool,
}

/// The current line.
struct Track {
    object: Value,
    points: Vec<(f64, f64)>,
    times: Option<(i64, i64)>,
    /// Min and max (numbers) or first (others) value of each field of the positions.
    values: Vec<(Value, Value)>,
}

impl TrackReader {
    /// Makes a reader of lines over a reader of positions with the schema `base`. `schema` is [`track_schema`]'s.
    pub fn new(
        positions: Box<dyn EventReader>,
        base: Arc<Schema>,
        schema: Arc<Schema>,
        track: &str,
    ) -> Result<TrackReader, Invalid> {
        let object = object_field(&base, track)?;
        let instant = if let TimeRole::Instant(i) = base.time { Some(i) } else { None };
        Ok(TrackReader {
            positions,
            base,
            builder: BatchBuilder::new(schema),
            object,
            instant,
            open: None,
            ended: false,
        })
    }

    fn take(&mut self, batch: &Batch) -> Result<(), Invalid> {
        for row in 0..batch.rows() {
            let object = value(batch, self.object, row);
            // Only neighbours are joined: an object's positions elsewhere in the input become another event, as memory
            // must not grow with the input.
            if self.open.as_ref().is_none_or(|t| t.object != object) {
                self.close()?;
                let empty = vec![(Value::Null, Value::Null); self.base.fields.len()];
                self.open = Some(Track { object, points: Vec::new(), times: None, values: empty });
            }
            let Some(track) = &mut self.open else { continue };
            if let Some(geo_types::Geometry::Point(p)) = batch.geometry(row) {
                track.points.push((p.x(), p.y()));
            }
            if self.instant.is_some() {
                let (time, _) = batch.interval(row);
                let (start, end) = track.times.unwrap_or((time, time));
                // Min and max, since positions of one object need not be in order of time.
                track.times = Some((start.min(time), end.max(time)));
            }
            for (field, (low, high)) in track.values.iter_mut().enumerate() {
                let value = value(batch, field, row);
                // A missing value must not become the min or max.
                if value == Value::Null {
                    continue;
                }
                if *low == Value::Null {
                    (*low, *high) = (value.clone(), value);
                } else if less(&value, low) {
                    *low = value;
                } else if less(high, &value) {
                    *high = value;
                }
            }
        }
        Ok(())
    }

    /// Ends the current line.
    fn close(&mut self) -> Result<(), Invalid> {
        let Some(track) = self.open.take() else { return Ok(()) };
        if let Some(shape) = line(&track.points) {
            self.builder.set_geometry(&shape)?;
        }
        let points = track.points.len() as i64;
        let mut values = vec![track.object];
        if let Some((start, end)) = track.times {
            values.extend([Value::Time(start), Value::Time(end)]);
        }
        values.push(Value::Int(points));
        for (i, (low, high)) in track.values.into_iter().enumerate() {
            // Both are already fields of the line: its object, and its start and end.
            if i == self.object || Some(i) == self.instant {
                continue;
            }
            values.push(low);
            if self.base.fields[i].kind.is_numeric() {
                values.push(high);
            }
        }
        for (field, value) in values.into_iter().enumerate() {
            self.builder.set(field, value)?;
        }
        self.builder.end_event()
    }

    fn advance(&mut self, limits: &BatchLimits) -> Result<(), ReadError> {
        // Several batches of positions may be needed for one line.
        while !self.ended && self.builder.rows() < limits.rows && self.builder.bytes() < limits.bytes {
            match self.positions.next_batch(limits)? {
                Some(batch) => self.take(&batch)?,
                None => {
                    self.ended = true;
                    self.close()?;
                }
            }
        }
        Ok(())
    }
}

impl EventReader for TrackReader {
    fn next_batch(&mut self, limits: &BatchLimits) -> Result<Option<Batch>, ReadError> {
        if let Err(error) = self.advance(limits) {
            self.ended = true;
            // After an error the current line is incomplete, and must not be stored.
            self.open = None;
            return Err(match error {
                ReadError::Invalid(mut mistakes) => {
                    // A mistake in a line comes from its positions: the last one read is the nearest line to report.
                    mistakes.iter_mut().for_each(|m| m.line = m.line.or(Some(self.positions.line())));
                    ReadError::Invalid(mistakes)
                }
                io => io,
            });
        }
        if self.builder.rows() == 0 {
            return Ok(None);
        }
        Ok(Some(self.builder.finish()?))
    }

    fn line(&self) -> u64 {
        self.positions.line()
    }

    fn report(&self) -> Report {
        self.positions.report()
    }
}

fn value(batch: &Batch, field: usize, row: usize) -> Value {
    use arrow_array::Array;
    let Some(column) = batch.field(field) else { return Value::Null };
    match column {
        FieldColumn::Text(c) if c.is_valid(row) => Value::Text(c.value(row).to_owned()),
        FieldColumn::Int(c) if c.is_valid(row) => Value::Int(c.value(row)),
        FieldColumn::Float(c) if c.is_valid(row) => Value::Float(c.value(row)),
        FieldColumn::Bool(c) if c.is_valid(row) => Value::Bool(c.value(row)),
        FieldColumn::Time(c) if c.is_valid(row) => Value::Time(c.value(row)),
        FieldColumn::TextList(c) if c.is_valid(row) => {
            use arrow_array::cast::AsArray;
            let list = c.value(row);
            let texts = list.as_string_opt::<i32>().map(|t| t.iter().flatten().map(str::to_owned).collect());
            texts.map_or(Value::Null, Value::TextList)
        }
        _ => Value::Null,
    }
}

/// Returns true if one number is less than another; false for values without an order, so the first one stays.
fn less(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a < b,
        (Value::Float(a), Value::Float(b)) => a < b,
        _ => false,
    }
}

/// Makes a line through the points, split where it crosses the antimeridian (RFC 7946, 3.1.9). A single position
/// becomes a line to itself.
fn line(points: &[(f64, f64)]) -> Option<geo_types::Geometry<f64>> {
    let first = points.first()?;
    // A line needs two positions.
    let points = points.iter().chain((points.len() == 1).then_some(first));
    // The positions of a line have no time of their own.
    let parts = cut_at_antimeridian(points.map(|&(lon, lat)| (lon, lat, 0)));
    let mut lines: Vec<geo_types::LineString<f64>> =
        parts.into_iter().map(|part| part.into_iter().map(|(lon, lat, _)| (lon, lat)).collect()).collect();
    Some(match lines.len() {
        1 => lines.remove(0).into(),
        _ => geo_types::MultiLineString(lines).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given(Vec<Batch>);

    impl EventReader for Given {
        fn next_batch(&mut self, _: &BatchLimits) -> Result<Option<Batch>, ReadError> {
            Ok(if self.0.is_empty() { None } else { Some(self.0.remove(0)) })
        }

        fn line(&self) -> u64 {
            7
        }

        fn report(&self) -> Report {
            Report::default()
        }
    }

    fn base() -> Arc<Schema> {
        Arc::new(
            meridian_model::schema_spec::parse("ship:String,dtg:Date,speed:Double,flag:String,*geom:Point").unwrap(),
        )
    }

    /// Positions (ship, seconds, lon, lat, speed) in batches of two.
    fn lines_of(rows: &[(&str, i64, f64, f64, f64)]) -> Vec<Batch> {
        let base = base();
        let batches = rows
            .chunks(2)
            .map(|rows| {
                let mut builder = BatchBuilder::new(base.clone());
                for (ship, time, lon, lat, speed) in rows {
                    builder.set(0, Value::Text((*ship).to_owned())).unwrap();
                    builder.set(1, Value::Time(*time)).unwrap();
                    builder.set(2, Value::Float(*speed)).unwrap();
                    builder.set(3, Value::Text(format!("flag of {time}"))).unwrap();
                    builder.set_point(*lon, *lat).unwrap();
                    builder.end_event().unwrap();
                }
                builder.finish().unwrap()
            })
            .collect();
        let schema = Arc::new(track_schema(&base, "ship").unwrap());
        let mut reader = TrackReader::new(Box::new(Given(batches)), base, schema, "ship").unwrap();
        let mut out = Vec::new();
        while let Some(batch) = reader.next_batch(&BatchLimits { rows: 1, bytes: 1 << 20 }).unwrap() {
            out.push(batch);
        }
        out
    }

    #[test]
    fn consecutive_positions_become_a_line() {
        let lines = Batch::concat(&lines_of(&[
            ("a", 10, 1.0, 1.0, 5.0),
            ("a", 5, 2.0, 1.0, 3.0),
            ("a", 20, 3.0, 2.0, 9.0),
            ("b", 30, 7.0, 7.0, 1.0),
            ("a", 40, 0.0, 0.0, 2.0),
        ]))
        .unwrap();
        assert_eq!(lines.rows(), 3);
        assert_eq!(lines.interval(0), (5, 20));
        let Some(geo_types::Geometry::LineString(line)) = lines.geometry(0) else { panic!("expected a line") };
        assert_eq!(line.0.len(), 3);
        let names: Vec<&str> = lines.schema().fields.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["ship", "start", "end", "points", "speed_min", "speed_max", "flag"]);
        assert_eq!(value(&lines, 3, 0), Value::Int(3));
        assert_eq!((value(&lines, 4, 0), value(&lines, 5, 0)), (Value::Float(3.0), Value::Float(9.0)));
        assert_eq!(value(&lines, 6, 0), Value::Text("flag of 10".to_owned()));
        assert_eq!(value(&lines, 3, 1), Value::Int(1));
    }

    #[test]
    fn a_line_over_the_antimeridian_is_cut_there() {
        for (from, to, expected) in [
            (179.0, -179.0, vec![vec![(179.0, 10.0), (180.0, 11.0)], vec![(-180.0, 11.0), (-179.0, 12.0)]]),
            // A position on it is on the side of its line.
            (-178.0, 180.0, vec![vec![(-178.0, 10.0), (-180.0, 12.0)]]),
            (180.0, -179.0, vec![vec![(-180.0, 10.0), (-179.0, 12.0)]]),
            (180.0, -180.0, vec![vec![(180.0, 10.0), (180.0, 12.0)]]),
        ] {
            let lines = lines_of(&[("a", 1, from, 10.0, 0.0), ("a", 2, to, 12.0, 0.0)]);
            let parts = match lines[0].geometry(0) {
                Some(geo_types::Geometry::LineString(line)) => vec![line],
                Some(geo_types::Geometry::MultiLineString(lines)) => lines.0,
                other => panic!("{other:?}"),
            };
            let found: Vec<Vec<(f64, f64)>> =
                parts.iter().map(|line| line.0.iter().map(|at| (at.x, at.y)).collect()).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_cannot_be_joined_is_refused() {
        let base = base();
        assert!(track_schema(&base, "boat").unwrap_err().detail.contains("ship, dtg, speed, flag"));
        assert!(track_schema(&base, "speed").is_err());
        assert!(track_schema(&Schema { geometry: None, ..(*base).clone() }, "ship").is_err());
    }
}
