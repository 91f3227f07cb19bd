//! `filter-lang=cql-text`: CQL2 text in the form written by clients of the standard's drafts.
//!
//! GDAL's driver sends a filter to a server only if the API description offers `cql-text`. It writes booleans as 0 and
//! 1, and instants as texts. It shortens both a date and `2026-01-31 10:00:00` to `2026-01-31T`.

use crate::protocol::problem::{Problem, Result};
use meridian_model::filter::{Comparison, Expr, Operand};
use meridian_model::{FieldType, Schema};

/// Converts the literals of a filter to the types that CQL2 defines.
pub fn as_cql2(expr: Expr, schema: &Schema) -> Result<Expr> {
    let each = |list: Vec<Expr>| list.into_iter().map(|e| as_cql2(e, schema)).collect::<Result<Vec<_>>>();
    Ok(match expr {
        Expr::And(list) => Expr::And(each(list)?),
        Expr::Or(list) => Expr::Or(each(list)?),
        Expr::Not(inner) => Expr::Not(Box::new(as_cql2(*inner, schema)?)),
        Expr::Compare { op, left, right } => compare(op, left, right, schema)?,
        other => other,
    })
}

fn compare(op: Comparison, left: Operand, right: Operand, schema: &Schema) -> Result<Expr> {
    let kind = |operand: &Operand| match operand {
        Operand::Property(name) => schema.field_index(name).map(|i| schema.fields[i].kind),
        _ => None,
    };
    let right = literal(kind(&left), right)?;
    let left = literal(kind(&right), left)?;
    Ok(Expr::Compare { op, left, right })
}

/// Converts a literal that is compared with a field of this type.
fn literal(beside: Option<FieldType>, operand: Operand) -> Result<Operand> {
    Ok(match (beside, operand) {
        (Some(FieldType::Bool), Operand::Int(n @ (0 | 1))) => Operand::Bool(n == 1),
        (Some(FieldType::Date), Operand::Text(text)) if text.len() == 11 && text.ends_with('T') => {
            Operand::Text(text[..10].to_owned())
        }
        // The text is ambiguous: a guess would be wrong for one of the two, and wrong rows are worse than an error.
        (Some(FieldType::Time), Operand::Text(text)) if text.len() == 11 && text.ends_with('T') => {
            let day = &text[..10];
            return Err(Problem::parameter(
                "filter",
                format!(
                    "'{text}' has no time of day, and GDAL writes it for {day} and for {day} 10:00:00 alike: \
                     write {day}T00:00:00Z or {}",
                    format!("{day} 00:00:00").replace('-', "/"),
                ),
            ));
        }
        (_, operand) => operand,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::filter::parse_text;
    use meridian_model::schema_spec;

    #[test]
    fn flags_are_read_and_a_day_without_a_time_is_refused() {
        let schema = schema_spec::parse("flag:Boolean,n:Integer,at:Date").unwrap();
        let read = |text: &str| as_cql2(parse_text(text).unwrap(), &schema);
        let same = [
            ("flag = 1", "flag = true"),
            ("NOT (0 <> flag OR n = 1)", "NOT (false <> flag OR n = 1)"),
            ("at >= '2026-01-31T10:00:00Z' AND n = 0", "at >= '2026-01-31T10:00:00Z' AND n = 0"),
        ];
        for (text, expected) in same {
            assert_eq!(read(text).unwrap(), parse_text(expected).unwrap(), "{text}");
        }
        let problem = read("NOT (at < '2026-01-31T')").unwrap_err();
        assert!(problem.detail().contains("write 2026-01-31T00:00:00Z or 2026/01/31 00:00:00"), "{}", problem.detail());
    }
}
