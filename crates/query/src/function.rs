//! Functions of the events of a group, and their values.

use crate::by::ByValue;
use meridian_model::{FieldType, Invalid, Schema};
use std::fmt;
use std::sync::Arc;

/// A function of the events of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// Number of events.
    Count,
    /// Number of events with a value of a numeric field.
    CountOf(usize),
    /// Sum of a numeric field.
    Sum(usize),
    /// Mean of a numeric field.
    Avg(usize),
    /// Min of a numeric field.
    Min(usize),
    /// Max of a numeric field.
    Max(usize),
    /// Percentile of a numeric field: the smallest value such that at least this percentage of the values do not
    /// exceed it.
    Percentile(usize, Percent),
    /// Number of distinct values of a field.
    Distinct(usize),
    /// The most frequent values of a text, integer or boolean field, with the max number of values.
    Top(usize, u32),
}

/// Max number of functions of a query.
pub const FUNCTIONS_MAX: usize = 64;
/// Max number of most frequent values that a query may request.
pub(crate) const TOP_MAX: u32 = 1000;

/// The value of a function.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionValue {
    /// No value: no event of the group has a value of the field.
    Null,
    /// An integer: counts, and sums and extremes of integer fields. Sums may exceed 64 bits.
    Int(i128),
    /// A float.
    Float(f64),
    /// Values with their event counts, the most frequent first.
    Top(Arc<[(ByValue, u64)]>),
}

/// A fraction of all values: 0 to 100 percent, in thousandths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Percent(u32);

impl Percent {
    const ALL: u32 = 100_000;

    /// Parses a number such as 50 or 99.9.
    fn parse(text: &str) -> Option<Percent> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) || fraction.len() > 3 || whole.len() > 3 {
            return None;
        }
        let thousandths = format!("{fraction:0<3}").parse::<u32>().ok()?;
        let all = whole.parse::<u32>().ok()? * 1000 + thousandths;
        (all <= Percent::ALL).then_some(Percent(all))
    }

    /// The rank, from 1, among `count` values in ascending order.
    pub(crate) fn rank(self, count: u64) -> u64 {
        let rank = (u128::from(count) * u128::from(self.0)).div_ceil(u128::from(Percent::ALL));
        u64::try_from(rank).unwrap_or(count).clamp(1, count.max(1))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, thousandths) = (self.0 / 1000, self.0 % 1000);
        match thousandths {
            0 => write!(f, "{whole}"),
            _ => f.write_str(format!("{whole}.{thousandths:03}").trim_end_matches('0')),
        }
    }
}

/// Splits a list at its commas, except those within parentheses.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0i32;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = (depth - 1).max(0),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

impl Function {
    /// Parses a list such as `count,sum(price),avg(price)`.
    pub fn parse(text: &str, schema: &Schema) -> Result<Vec<Function>, Invalid> {
        let functions =
            parts(text).map(|part| Function::parse_one(part.trim(), schema)).collect::<Result<Vec<_>, _>>()?;
        // Each function adds a column of running totals for every group.
        if functions.len() > FUNCTIONS_MAX {
            return Err(Invalid::field(
                "function",
                format!("at most {FUNCTIONS_MAX} functions can be asked for at once"),
            ));
        }
        // Two results with the same name could not be told apart.
        let again = functions.iter().enumerate().find(|(at, function)| functions[..*at].contains(function));
        if let Some((_, function)) = again {
            return Err(Invalid::field("function", format!("{} is named twice", function.name(schema))));
        }
        Ok(functions)
    }

    /// Parses one function, whatever the property's name.
    pub(crate) fn parse_one(text: &str, schema: &Schema) -> Result<Function, Invalid> {
        let wrong = |why: String| Invalid::field("function", why);
        let (name, inside) = match text.split_once('(') {
            None if text == "count" => return Ok(Function::Count),
            None => (text, None),
            Some((name, rest)) => (name, rest.strip_suffix(')')),
        };
        // A number after the last comma, for functions that take one.
        let (field, number) = match (name, inside.and_then(|inside| inside.rsplit_once(','))) {
            ("percentile" | "top", Some((field, number))) => (Some(field.trim_end()), Some(number.trim())),
            ("percentile" | "top", None) => (inside.filter(|inside| !inside.is_empty()), None),
            _ => (inside, None),
        };
        let expected = match name {
            "count" | "sum" | "avg" | "min" | "max" | "median" | "distinct" => format!("{name}(PROPERTY)"),
            "percentile" => "percentile(PROPERTY,PERCENT), such as percentile(price,95)".to_owned(),
            "top" => "top(PROPERTY,NUMBER), such as top(kind,5)".to_owned(),
            _ => {
                return Err(wrong(format!(
                    "{text:?} is not a function: expected count, or count, sum, avg, min, max, median, percentile, distinct or top of a property, such as avg(price) or percentile(price,95)"
                )));
            }
        };
        let field = field.ok_or_else(|| wrong(format!("{text:?} names no property: expected {expected}")))?;
        let index = schema
            .field_index(field)
            .ok_or_else(|| wrong(format!("{field:?} is not a property of this collection")))?;
        let missing = |what: &str, example: u32| {
            wrong(format!("{text:?} lacks a {what} after the property: expected one such as {name}({field},{example})"))
        };
        let function = match name {
            "count" => Function::CountOf(index),
            "sum" => Function::Sum(index),
            "avg" => Function::Avg(index),
            "min" => Function::Min(index),
            "max" => Function::Max(index),
            "median" => Function::Percentile(index, Percent(Percent::ALL / 2)),
            "distinct" => Function::Distinct(index),
            "percentile" => {
                let number = number.ok_or_else(|| missing("percentage", 95))?;
                let percent = Percent::parse(number).ok_or_else(|| {
                    wrong(format!("{number:?}: expected a percentage of 0 to 100 with at most three decimals"))
                })?;
                Function::Percentile(index, percent)
            }
            _ => {
                let number = number.ok_or_else(|| missing("number of values", 5))?;
                let k = number.parse().ok().filter(|k| (1..=TOP_MAX).contains(k));
                Function::Top(
                    index,
                    k.ok_or_else(|| wrong(format!("{number:?}: expected a number of 1 to {TOP_MAX}")))?,
                )
            }
        };
        function.check(schema)?;
        Ok(function)
    }

    /// Checks that its field has a type that it accepts.
    pub(crate) fn check(&self, schema: &Schema) -> Result<(), Invalid> {
        let (field, takes, expected): (usize, fn(FieldType) -> bool, &str) = match *self {
            Function::Count => return Ok(()),
            Function::Distinct(field) => (field, |kind| kind != FieldType::TextList, "another property than a list"),
            Function::Top(field, _) => (field, groups_by, "a string, an integer or a boolean"),
            Function::CountOf(f) | Function::Sum(f) | Function::Avg(f) | Function::Min(f) | Function::Max(f) => {
                (f, FieldType::is_numeric, "a numeric property")
            }
            Function::Percentile(field, _) => (field, FieldType::is_numeric, "a numeric property"),
        };
        match schema.fields.get(field) {
            Some(one) if takes(one.kind) => Ok(()),
            Some(one) => {
                let detail = format!("{:?} is a {}: expected {expected}", one.name, one.kind.word());
                Err(Invalid::field("function", detail))
            }
            None => Err(Invalid::field("function", format!("expected {expected}"))),
        }
    }

    /// The name as it appears in a result, such as `sum(price)`.
    pub fn name(&self, schema: &Schema) -> String {
        let field = |field: &usize| schema.fields.get(*field).map_or("", |f| f.name.as_str());
        let of = |name: &str, f: &usize| format!("{name}({})", field(f));
        match self {
            Function::Count => "count".to_owned(),
            Function::CountOf(f) => of("count", f),
            Function::Sum(f) => of("sum", f),
            Function::Avg(f) => of("avg", f),
            Function::Min(f) => of("min", f),
            Function::Max(f) => of("max", f),
            Function::Percentile(f, percent) => format!("percentile({},{percent})", field(f)),
            Function::Distinct(f) => of("distinct", f),
            Function::Top(f, k) => format!("top({},{k})", field(f)),
        }
    }

    /// Whether its value may be an estimate, which has an error.
    pub fn may_err(&self) -> bool {
        matches!(self, Function::Percentile(..) | Function::Distinct(_) | Function::Top(..))
    }

    /// The field of its running totals, if any.
    pub(crate) fn field(&self) -> Option<usize> {
        match *self {
            Function::CountOf(f) | Function::Sum(f) | Function::Avg(f) | Function::Min(f) | Function::Max(f) => Some(f),
            Function::Count | Function::Percentile(..) | Function::Distinct(_) | Function::Top(..) => None,
        }
    }
}

/// Whether groups may be formed by a field of this type.
pub(crate) fn groups_by(kind: FieldType) -> bool {
    matches!(kind, FieldType::Text | FieldType::Int | FieldType::Bool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_percentage_is_read_as_it_was_shown(thousandths in 0u32..=100_000, count in 1u64..10_000) {
            let percent = Percent(thousandths);
            prop_assert_eq!(Percent::parse(&percent.to_string()), Some(percent));
            // The first rank at which enough values are not exceeded.
            let enough = |rank: u64| u128::from(rank) * 100_000 >= u128::from(count) * u128::from(thousandths);
            let rank = percent.rank(count);
            prop_assert!((1..=count).contains(&rank) && enough(rank) && (rank == 1 || !enough(rank - 1)));
        }
    }

    #[test]
    fn what_is_no_percentage_is_refused() {
        for text in ["", ".", "5.", ".5", "-1", "+1", "1e1", "100.001", "101", "99.9999", "1 ", "0005"] {
            assert_eq!(Percent::parse(text), None, "{text:?}");
        }
        assert_eq!(
            [Percent(99_900).to_string(), Percent(50_000).to_string(), Percent(1).to_string()],
            ["99.9", "50", "0.001"]
        );
        assert_eq!(Percent(100_000).rank(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_function_without_its_number_is_told_what_is_missing() {
        let schema = meridian_model::schema_spec::parse("mag:Double,kind:String,*geom:Point:srid=4326").unwrap();
        let refusal = |text: &str| Function::parse(text, &schema).unwrap_err().detail;
        for (text, missing, example) in [
            ("percentile(mag)", "lacks a percentage", "percentile(mag,95)"),
            ("top(kind)", "lacks a number of values", "top(kind,5)"),
        ] {
            let detail = refusal(text);
            assert!(detail.contains(missing) && detail.ends_with(example), "{detail}");
            assert!(Function::parse(example, &schema).is_ok(), "{example}");
        }
        for text in ["percentile", "percentile()", "top()"] {
            assert!(refusal(text).contains("names no property"), "{}", refusal(text));
        }
        assert!(refusal("percentile(nope)").contains("\"nope\" is not a property"));
    }

    #[test]
    fn commas_within_parentheses_belong_to_a_function() {
        let of = |text: &'static str| parts(text).collect::<Vec<_>>();
        assert_eq!(of("count,top(a,5), max(b)"), ["count", "top(a,5)", " max(b)"]);
        assert_eq!(of("a),b(c,d"), ["a)", "b(c,d"]);
        assert_eq!(of(""), [""]);
    }
}
