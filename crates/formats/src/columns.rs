//! Arrow columns of any customary type, read value by value.

mod numbers;

use crate::options::ReadOptions;
use crate::shape::Shape;
use crate::survey::{Survey, coord};
use crate::values::{blame, epoch, set_text};
use crate::{instant, wkb, wkt};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Float16Type, Float32Type, Float64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Float64Array, Int64Array, LargeBinaryArray,
    LargeStringArray, StringArray, StringViewArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use jiff::tz::TimeZone;
use meridian_model::builder::Value;
use meridian_model::error::shorten;
use meridian_model::{BatchBuilder, FieldType, Invalid, time};
use numbers::Wide;

/// A column, in one of the few forms from which values are read.
pub(crate) enum Column {
    /// Nulls only.
    Null,
    Text(Texts),
    Int(Int64Array),
    Float(Float64Array),
    /// Numbers of which some do not fit into 64 bits.
    Wide(Wide),
    Bool(BooleanArray),
    Time(Times),
    /// Lists: the offset of each, and their texts.
    List {
        offsets: Vec<usize>,
        nulls: Option<NullBuffer>,
        texts: Texts,
    },
    Binary(Binaries),
    /// Points as pairs of coordinates, separate or interleaved.
    Points {
        x: Float64Array,
        y: Float64Array,
        nulls: Option<NullBuffer>,
        /// Whether a point has more than two numbers.
        heights: bool,
    },
}

/// Texts of any width. A dictionary is kept as one, so that few long texts under many keys stay few.
pub(crate) enum Texts {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
    Dictionary { keys: Int64Array, texts: Box<Texts> },
}

/// Byte strings of any width.
pub(crate) enum Binaries {
    Small(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
}

/// Instants in units of `per_second`.
pub(crate) struct Times {
    values: Int64Array,
    per_second: i128,
    /// Whether the type determines the instants; dates and timestamps without a zone do not.
    pub(crate) zoned: bool,
    /// Whether they are days.
    days: bool,
}

impl Texts {
    fn of(array: &ArrayRef) -> Option<Texts> {
        Some(match array.data_type() {
            DataType::Utf8 => Texts::Small(array.as_string::<i32>().clone()),
            DataType::LargeUtf8 => Texts::Large(array.as_string::<i64>().clone()),
            DataType::Utf8View => Texts::View(array.as_string_view().clone()),
            DataType::Dictionary(_, values) if !matches!(**values, DataType::Dictionary(..)) => {
                let dictionary = array.as_any_dictionary();
                let Some(Column::Int(keys)) = numbers::of(&arrow_array::make_array(dictionary.keys().to_data())) else {
                    return None;
                };
                Texts::Dictionary { keys, texts: Box::new(Texts::of(dictionary.values())?) }
            }
            _ => return None,
        })
    }

    /// Returns the text at an index; `None` if null.
    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        match self {
            Texts::Small(a) => a.is_valid(at).then(|| a.value(at)),
            Texts::Large(a) => a.is_valid(at).then(|| a.value(at)),
            Texts::View(a) => a.is_valid(at).then(|| a.value(at)),
            Texts::Dictionary { keys, texts } => {
                let key = keys.is_valid(at).then(|| keys.value(at))?;
                // A foreign dictionary is not validated here: a key out of range is a null, not a panic.
                texts.get(usize::try_from(key).ok().filter(|&key| key < texts.len())?)
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Texts::Small(a) => a.len(),
            Texts::Large(a) => a.len(),
            Texts::View(a) => a.len(),
            Texts::Dictionary { keys, .. } => keys.len(),
        }
    }
}

impl Binaries {
    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        match self {
            Binaries::Small(a) => a.is_valid(at).then(|| a.value(at)),
            Binaries::Large(a) => a.is_valid(at).then(|| a.value(at)),
            Binaries::View(a) => a.is_valid(at).then(|| a.value(at)),
        }
    }
}

impl Times {
    /// Returns microseconds since 1970; wall time if the type has no zone.
    pub(crate) fn get(&self, at: usize) -> Option<Result<i64, Invalid>> {
        self.values.is_valid(at).then(|| {
            let micros = i128::from(self.values.value(at)) * 1_000_000;
            // Rounded down, also before 1970: truncation would move those instants towards the epoch. Uses 128 bits,
            // as seconds times a million may exceed 64.
            let micros = micros.div_euclid(self.per_second);
            let micros = i64::try_from(micros).unwrap_or(i64::MAX);
            time::in_range(micros, &"of this value")
        })
    }

    /// Returns all values as microseconds since 1970, if all are times.
    pub(crate) fn micros(&self) -> Option<&Int64Array> {
        (self.zoned && self.per_second == 1_000_000).then_some(&self.values)
    }

    fn instant(&self, at: usize, zone: Option<&TimeZone>) -> Option<Result<i64, Invalid>> {
        let wall = self.get(at)?;
        if self.zoned {
            return Some(wall);
        }
        // Through text, so that one rule decides about times without a zone.
        Some(wall.and_then(|micros| instant::parse(&wall_text(micros), zone)))
    }

    /// Returns the time as text: a day, a time without a zone, or an instant in UTC.
    fn text(&self, at: usize) -> Option<Result<String, Invalid>> {
        Some(self.get(at)?.map(|micros| match (self.days, self.zoned) {
            (true, _) => time::format_date(micros),
            (_, true) => time::format_instant(micros),
            _ => wall_text(micros),
        }))
    }
}

/// Returns a time without a zone as text.
fn wall_text(micros: i64) -> String {
    let mut text = time::format_instant(micros);
    text.pop();
    text
}

fn times(array: &ArrayRef) -> Option<Times> {
    fn raw<T: arrow_array::ArrowPrimitiveType<Native = i64>>(array: &ArrayRef) -> Int64Array {
        array.as_primitive::<T>().unary(|n| n)
    }
    let (values, per_second, zoned) = match array.data_type() {
        DataType::Timestamp(unit, zone) => match unit {
            TimeUnit::Second => (raw::<TimestampSecondType>(array), 1, zone.is_some()),
            TimeUnit::Millisecond => (raw::<TimestampMillisecondType>(array), 1_000, zone.is_some()),
            TimeUnit::Microsecond => (raw::<TimestampMicrosecondType>(array), 1_000_000, zone.is_some()),
            TimeUnit::Nanosecond => (raw::<TimestampNanosecondType>(array), 1_000_000_000, zone.is_some()),
        },
        DataType::Date32 => (array.as_primitive::<Date32Type>().unary(|d| i64::from(d) * 86_400), 1, false),
        DataType::Date64 => (raw::<Date64Type>(array), 1_000, false),
        _ => return None,
    };
    let days = matches!(array.data_type(), DataType::Date32 | DataType::Date64);
    Some(Times { values, per_second, zoned, days })
}

impl Column {
    /// Returns the values of an Arrow array.
    pub(crate) fn of(array: &ArrayRef, name: &str) -> Result<Column, Invalid> {
        let strange = || Invalid::field(name, format!("a column of type {} is not supported", array.data_type()));
        if let Some(numbers) = numbers::of(array) {
            return Ok(numbers);
        }
        if let Some(times) = times(array) {
            return Ok(Column::Time(times));
        }
        if let Some(texts) = Texts::of(array) {
            return Ok(Column::Text(texts));
        }
        Ok(match array.data_type() {
            DataType::Null => Column::Null,
            DataType::Boolean => Column::Bool(array.as_boolean().clone()),
            DataType::Float16 => Column::Float(array.as_primitive::<Float16Type>().unary(|x| x.to_f64())),
            DataType::Float32 => Column::Float(array.as_primitive::<Float32Type>().unary(f64::from)),
            DataType::Float64 => Column::Float(array.as_primitive::<Float64Type>().clone()),
            DataType::Binary => Column::Binary(Binaries::Small(array.as_binary::<i32>().clone())),
            DataType::LargeBinary => Column::Binary(Binaries::Large(array.as_binary::<i64>().clone())),
            DataType::BinaryView => Column::Binary(Binaries::View(array.as_binary_view().clone())),
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let texts = Texts::of(list.values()).ok_or_else(strange)?;
                let offsets = list.value_offsets().iter().map(|&o| o as usize).collect();
                Column::List { offsets, nulls: list.nulls().cloned(), texts }
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let texts = Texts::of(list.values()).ok_or_else(strange)?;
                let offsets = list.value_offsets().iter().map(|&o| o as usize).collect();
                Column::List { offsets, nulls: list.nulls().cloned(), texts }
            }
            DataType::Struct(_) => {
                let pair = array.as_struct();
                let part = |name: &str| Some(pair.column_by_name(name)?.as_primitive_opt::<Float64Type>()?.clone());
                let (x, y) = part("x").zip(part("y")).ok_or_else(strange)?;
                let heights = ["z", "m"].iter().any(|more| pair.column_by_name(more).is_some());
                Column::Points { x, y, nulls: pair.nulls().cloned(), heights }
            }
            // The two encodings of GeoArrow points: separate coordinates (a struct) and interleaved ones (a list of
            // fixed size).
            DataType::FixedSizeList(_, width @ (2 | 3)) => {
                let pairs = array.as_fixed_size_list();
                let values = pairs.values().as_primitive_opt::<Float64Type>().ok_or_else(strange)?;
                let width = *width as usize;
                // A slice of an array shares the values of the whole, so its first pair need not be at 0.
                let first = pairs.value_offset(0) as usize;
                let every = |from: usize| -> Float64Array {
                    (0..pairs.len()).map(|i| values.value(first + i * width + from)).collect::<Vec<_>>().into()
                };
                Column::Points { x: every(0), y: every(1), nulls: pairs.nulls().cloned(), heights: width > 2 }
            }
            _ => return Err(strange()),
        })
    }

    /// Returns the texts of a list; `None` if null.
    fn list(offsets: &[usize], nulls: Option<&NullBuffer>, texts: &Texts, row: usize) -> Option<Vec<String>> {
        if nulls.is_some_and(|n| n.is_null(row)) {
            return None;
        }
        let (from, to) = (*offsets.get(row)?, *offsets.get(row + 1)?);
        Some((from..to).filter_map(|i| texts.get(i).map(str::to_owned)).collect())
    }

    /// Returns a row's list as a JSON array; `None` if null or in other columns.
    pub(crate) fn json(&self, row: usize) -> Option<String> {
        let Column::List { offsets, nulls, texts } = self else { return None };
        let list = Column::list(offsets, nulls.as_ref(), texts, row)?;
        Some(serde_json::Value::from(list).to_string())
    }

    /// Sets a field of the current event to a row's value.
    pub(crate) fn set_field(
        &self,
        row: usize,
        field: usize,
        builder: &mut BatchBuilder,
        options: &ReadOptions,
    ) -> Result<(), Invalid> {
        let spec = &builder.schema().fields[field];
        let is_time = spec.kind.is_time();
        // A date is the same in any zone: columns of dates have none.
        let utc = TimeZone::UTC;
        let zone = if spec.kind == FieldType::Date { Some(&utc) } else { options.zone.as_ref() };
        let named = |mistake: Invalid| blame(mistake, &spec.name);
        let integer = |n: i64| match options.epoch {
            Some(unit) if is_time => epoch(n, unit.micros()).map(Value::Time).map_err(named),
            _ => Ok(Value::Int(n)),
        };
        let value = match self {
            Column::Null => return Ok(()),
            Column::Text(texts) => match texts.get(row) {
                None => return Ok(()),
                Some(text) if is_time => Value::Time(instant::parse_as(spec.kind, text, options).map_err(named)?),
                // Formats without lists store them as JSON.
                Some(text) if spec.kind == FieldType::TextList => return set_text(builder, field, text, options),
                Some(text) => return builder.set_text(field, text),
            },
            Column::Int(a) if a.is_null(row) => return Ok(()),
            Column::Int(a) => integer(a.value(row))?,
            Column::Wide(a) => match a.text(row).map(|text| (text.parse::<i64>(), text)) {
                None => return Ok(()),
                Some((Ok(n), _)) => integer(n)?,
                Some((Err(_), text)) => return numbers::set(builder, field, &text),
            },
            Column::Float(a) if a.is_null(row) => return Ok(()),
            Column::Float(a) => Value::Float(a.value(row)),
            Column::Bool(a) if a.is_null(row) => return Ok(()),
            Column::Bool(a) => Value::Bool(a.value(row)),
            Column::Time(times) if spec.kind == FieldType::Text => match times.text(row) {
                None => return Ok(()),
                Some(text) => {
                    let text = text.map_err(named)?;
                    return builder.set_text(field, &text);
                }
            },
            Column::Time(times) => match times.instant(row, zone) {
                None => return Ok(()),
                Some(micros) => Value::Time(micros.map_err(named)?),
            },
            Column::List { offsets, nulls, texts } => match Column::list(offsets, nulls.as_ref(), texts, row) {
                None => return Ok(()),
                Some(list) => Value::TextList(list),
            },
            Column::Binary(_) | Column::Points { .. } => {
                let detail = format!("a column of bytes or points where {} was expected", spec.kind.noun());
                return Err(Invalid::field(&spec.name, detail));
            }
        };
        builder.set(field, value)
    }

    /// Returns a row's geometry.
    pub(crate) fn shape(&self, row: usize, name: &str, survey: &mut Survey) -> Result<Option<Shape>, Invalid> {
        let shape = match self {
            Column::Null => Ok(None),
            Column::Binary(a) => a.get(row).map_or(Ok(None), |bytes| wkb::read(bytes, survey)),
            Column::Text(a) => a.get(row).map_or(Ok(None), |text| wkt::read_text_or_hex(text.trim(), survey)),
            Column::Points { x, y, nulls, heights } => {
                let null = nulls.as_ref().is_some_and(|n| n.is_null(row)) || x.is_null(row) || y.is_null(row);
                // GeoArrow has no other form for an empty point.
                let empty = !null && x.value(row).is_nan() && y.value(row).is_nan();
                if null || empty {
                    return Ok(None);
                }
                let height = if *heights { survey.height() } else { Ok(()) };
                height.map(|()| Some(Shape::Point(coord(x.value(row), y.value(row)))))
            }
            _ => Err(Invalid::new("expected a column of WKB, WKT or points")),
        };
        shape.map_err(|e| blame(e, name))
    }

    /// Returns a row's coordinate in degrees.
    pub(crate) fn degrees(&self, row: usize, name: &str) -> Result<Option<f64>, Invalid> {
        match self {
            Column::Null => Ok(None),
            Column::Float(a) => Ok(a.is_valid(row).then(|| a.value(row))),
            Column::Int(a) => Ok(a.is_valid(row).then(|| a.value(row) as f64)),
            Column::Wide(a) => Ok(a.float(row)),
            _ => Err(Invalid::field(name, "expected a column of numbers, in degrees")),
        }
    }

    /// Returns a row's id as text.
    pub(crate) fn id(&self, row: usize, name: &str) -> Result<Option<String>, Invalid> {
        match self {
            Column::Null => Ok(None),
            Column::Text(a) => Ok(a.get(row).map(str::to_owned)),
            Column::Int(a) => Ok(a.is_valid(row).then(|| a.value(row).to_string())),
            Column::Wide(a) if a.are_whole() => Ok(a.text(row)),
            _ => Err(Invalid::field(shorten(name), "expected a column of ids: texts or integers")),
        }
    }
}
