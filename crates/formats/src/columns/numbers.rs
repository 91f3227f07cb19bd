//! Integers and decimals of any width.

use super::Column;
use crate::values::is_rounded;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, Decimal128Array};
use arrow_schema::DataType;
use meridian_model::builder::Value;
use meridian_model::{BatchBuilder, FieldType, Invalid};

/// A float keeps decimals of fewer digits than this number has.
const DIGITS_KEPT: u128 = 1_000_000_000_000_000;
/// Up to this power of ten, floats hold them all.
const POWER_KEPT: i8 = 22;

/// Decimals, or integers, of which some do not fit into 64 bits. They are read as text, value by value.
pub(crate) struct Wide(Decimal128Array);

impl Wide {
    /// Whether they are integers.
    pub(crate) fn are_whole(&self) -> bool {
        self.0.scale() == 0
    }

    /// Returns a row's number, without zeros at its end; `None` if null.
    pub(crate) fn text(&self, row: usize) -> Option<String> {
        self.0.is_valid(row).then(|| text(self.0.value(row), usize::from(self.0.scale().unsigned_abs())))
    }

    /// Returns a row's number as the nearest float.
    pub(crate) fn float(&self, row: usize) -> Option<f64> {
        self.text(row)?.parse().ok()
    }
}

fn text(digits: i128, scale: usize) -> String {
    let sign = if digits < 0 { "-" } else { "" };
    let digits = format!("{:0>1$}", digits.unsigned_abs(), scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let part = part.trim_end_matches('0');
    let point = if part.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{part}")
}

/// Returns integers and decimals of any width; `None` for other types.
pub(super) fn of(array: &ArrayRef) -> Option<Column> {
    macro_rules! widen {
        ($kind:ty) => {
            Column::Int(array.as_primitive::<$kind>().unary::<_, Int64Type>(i64::from))
        };
    }
    Some(match array.data_type() {
        DataType::Int8 => widen!(Int8Type),
        DataType::Int16 => widen!(Int16Type),
        DataType::Int32 => widen!(Int32Type),
        DataType::Int64 => widen!(Int64Type),
        DataType::UInt8 => widen!(UInt8Type),
        DataType::UInt16 => widen!(UInt16Type),
        DataType::UInt32 => widen!(UInt32Type),
        DataType::UInt64 => {
            let integers = array.as_primitive::<UInt64Type>().unary::<_, Decimal128Type>(i128::from);
            narrowed(integers.with_data_type(DataType::Decimal128(38, 0)))
        }
        DataType::Decimal128(..) => narrowed(array.as_primitive::<Decimal128Type>().clone()),
        _ => return None,
    })
}

/// Returns numbers of 64 bits, if all are the same as such.
fn narrowed(numbers: Decimal128Array) -> Column {
    let scale = numbers.scale();
    if scale == 0 {
        return match numbers.try_unary::<_, Int64Type, _>(i64::try_from) {
            Ok(integers) => Column::Int(integers),
            Err(_) => Column::Wide(Wide(numbers)),
        };
    }
    // Parquet has no negative scale, and few writers of Arrow do.
    if scale < 0 || scale <= POWER_KEPT && numbers.iter().flatten().all(|n| n.unsigned_abs() < DIGITS_KEPT) {
        // Divided, not multiplied by the inverse: 10^-n is not exact in binary.
        let unit = 10f64.powi(i32::from(scale));
        return Column::Float(numbers.unary(|n| n as f64 / unit));
    }
    Column::Wide(Wide(numbers))
}

/// Sets a field of the current event to a number that is no integer of 64 bits. One that a float rounds is noted.
pub(super) fn set(builder: &mut BatchBuilder, field: usize, text: &str) -> Result<(), Invalid> {
    let spec = &builder.schema().fields[field];
    let is_decimal = text.contains('.');
    match text.parse::<f64>() {
        Ok(x) if is_decimal || spec.kind == FieldType::Float => {
            let rounded = if is_decimal { x.to_string() != text } else { is_rounded(text, x) };
            if rounded && spec.kind == FieldType::Float {
                builder.note_rounded(field, text, x);
            }
            builder.set(field, Value::Float(x))
        }
        _ => Err(Invalid::field(&spec.name, format!("the integer {text} is too large for 64 signed bits"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_their_point_and_no_zeros_at_the_end() {
        for (digits, scale, expected) in [
            (0, 0, "0"),
            (0, 3, "0"),
            (-5, 2, "-0.05"),
            (1250, 2, "12.5"),
            (100, 2, "1"),
            (i128::from(u64::MAX), 0, "18446744073709551615"),
            (-1_234_567_890_123_456_789, 3, "-1234567890123456.789"),
        ] {
            assert_eq!(text(digits, scale), expected);
        }
    }
}
