//! Binds a filter to a schema: resolves names to fields and checks types.

mod geometry;
mod operand;

use super::booleans::{BoolTest, Side};
use super::expr::{ArrayOp, Comparison, Expr, Operand, TemporalOp};
use super::like::Pattern;
use super::numbers::{Number, NumberSet, compare_literals};
use super::outcomes::Outcomes;
use super::predicate::{Node, Nullable, Predicate};
use super::temporal::{Edge, Moment, TemporalTest};
use super::texts::{List, Source, Text, holds_of_lists};
use crate::caseless::fold;
use crate::error::Invalid;
use crate::schema::{FieldType, Schema};
use operand::{GeometrySide, TypedOperand, blame, shown, wrong};

/// Binds a whole filter.
pub(crate) fn bind(expr: &Expr, schema: &Schema) -> Result<Predicate, Invalid> {
    Binder { schema }.expr(expr)
}

struct Binder<'a> {
    schema: &'a Schema,
}

impl Binder<'_> {
    fn expr(&self, expr: &Expr) -> Result<Predicate, Invalid> {
        let all = |parts: &[Expr]| parts.iter().map(|p| self.expr(p)).collect::<Result<Vec<_>, _>>();
        match expr {
            Expr::Bool(value) => Ok(Predicate::constant(*value)),
            Expr::And(parts) => Ok(Predicate::and(all(parts)?)),
            Expr::Or(parts) => Ok(Predicate::or(all(parts)?)),
            Expr::Not(inner) => Ok(self.expr(inner)?.not()),
            Expr::Compare { op, left, right } => self.compare(*op, left, right),
            Expr::Like { value, pattern } => self.like(value, pattern),
            Expr::Between { value, low, high } => Ok(Predicate::and(vec![
                self.compare(Comparison::Ge, value, low)?,
                self.compare(Comparison::Le, value, high)?,
            ])),
            Expr::In { value, list } => self.is_in(value, list),
            Expr::IsNull(value) => self.is_null(value),
            Expr::Spatial { op, left, right } => self.spatial(*op, left, right),
            Expr::Temporal { op, left, right } => {
                let moments = (self.moment(left)?, self.moment(right)?);
                Ok(temporal(*op, moments.0, moments.1))
            }
            Expr::Array { op, left, right } => self.lists(*op, left, right),
        }
    }

    fn compare(&self, op: Comparison, left: &Operand, right: &Operand) -> Result<Predicate, Invalid> {
        let mut a = self.typed(left)?;
        let mut b = self.typed(right)?;
        // A text is a time only when compared with a time: alone it stays a text, so that `'2020'` compares with
        // names.
        if let TypedOperand::Time(_) = b {
            a = self.as_time(a)?;
        }
        if let TypedOperand::Time(_) = a {
            b = self.as_time(b)?;
        }
        Ok(match (a, b) {
            (TypedOperand::Number(a), TypedOperand::Number(b)) => match compare_literals(a, b) {
                Some(order) => Predicate::constant(op.holds(order)),
                // Put the field on the left, where comparing is fastest.
                None if !matches!(a, Number::Field(_)) => {
                    Predicate::new(Node::Number { op: op.flipped(), left: b, right: a })
                }
                None => Predicate::new(Node::Number { op, left: a, right: b }),
            },
            (TypedOperand::Text(a), TypedOperand::Text(b)) => match (a.literal(), b.literal()) {
                (Some(a), Some(b)) => Predicate::constant(op.holds(a.cmp(&b))),
                (Some(_), None) => Predicate::new(Node::Text { op: op.flipped(), left: b, right: a }),
                _ => Predicate::new(Node::Text { op, left: a, right: b }),
            },
            (TypedOperand::Bool(left), TypedOperand::Bool(right)) => {
                let test = BoolTest { op, left, right };
                test.constant().map_or_else(|| Predicate::new(Node::Bool(test)), Predicate::constant)
            }
            (
                TypedOperand::Time(a @ (Moment::Property(_) | Moment::Instant(..))),
                TypedOperand::Time(b @ (Moment::Property(_) | Moment::Instant(..))),
            ) => match op {
                Comparison::Eq => temporal(TemporalOp::Intersects, a, b),
                Comparison::Ne => temporal(TemporalOp::Disjoint, a, b),
                Comparison::Lt => temporal(TemporalOp::Before, a, b),
                // Not "before or equal": a day is a span of instants, and `<=` includes any that overlaps it.
                Comparison::Le => temporal(TemporalOp::After, a, b).not(),
                Comparison::Gt => temporal(TemporalOp::After, a, b),
                Comparison::Ge => temporal(TemporalOp::Before, a, b).not(),
            },
            (a @ TypedOperand::Time(_), b @ TypedOperand::Time(_)) => {
                return Err(wrong(
                    &[left, right],
                    format!(
                        "{} cannot be compared with {} by {}: expected a function such as T_INTERSECTS",
                        shown(left, &a),
                        shown(right, &b),
                        op.text()
                    ),
                ));
            }
            (a, b) => {
                return Err(wrong(
                    &[left, right],
                    format!("{} cannot be compared with {}", shown(left, &a), shown(right, &b)),
                ));
            }
        })
    }

    fn like(&self, value: &Operand, pattern: &Operand) -> Result<Predicate, Invalid> {
        // Without CASEI, which has an error of its own: ILIKE is parsed into it, and its user wrote none.
        let (word, folds, value, pattern) = match (value, pattern) {
            (Operand::Casei(value), Operand::Casei(pattern)) => {
                ("ILIKE, which is LIKE with CASEI,", true, value.as_ref(), pattern.as_ref())
            }
            _ => ("LIKE", false, value, pattern),
        };
        match (self.typed(value)?, self.typed(pattern)?) {
            (TypedOperand::Text(text), TypedOperand::Text(Text { source: Source::Literal(pattern), fold })) => {
                let text = Text { fold: text.fold || folds, ..text };
                let pattern = Pattern::new(&pattern, fold || folds)?;
                Ok(match text.literal() {
                    Some(literal) => Predicate::constant(pattern.matches(&literal)),
                    None => Predicate::new(Node::Like { value: text, pattern }),
                })
            }
            (left, right) => {
                // The wrong side is blamed. A literal has no name: the field beside it is blamed for it.
                let blamed = if matches!(left, TypedOperand::Text(_)) { [pattern, value] } else { [value, pattern] };
                let found = format!("{} and {}", shown(value, &left), shown(pattern, &right));
                Err(wrong(&blamed, format!("{word} takes text: a string and a pattern in quotes, found {found}")))
            }
        }
    }

    fn is_in(&self, value: &Operand, list: &[Operand]) -> Result<Predicate, Invalid> {
        // A set is looked up once per row, whatever its size. A list with a property differs by row and has to be
        // compared.
        let literals_only = list.iter().all(|item| blame(item).is_none());
        match self.typed(value)? {
            TypedOperand::Number(Number::Field(field)) if literals_only => {
                let mut numbers = Vec::with_capacity(list.len());
                for item in list {
                    match self.typed(item)? {
                        TypedOperand::Number(number) => numbers.push(number),
                        _ => {
                            self.compare(Comparison::Eq, value, item)?;
                        }
                    }
                }
                let of_ints = self.schema.fields[field].kind == FieldType::Int;
                Ok(Predicate::new(Node::NumberIn { field, set: NumberSet::new(of_ints, &numbers) }))
            }
            TypedOperand::Text(text) if text.literal().is_none() && literals_only => {
                let mut set = std::collections::HashSet::with_capacity(list.len());
                for item in list {
                    match self.typed(item)? {
                        TypedOperand::Text(Text { source: Source::Literal(text), fold: folded }) => {
                            set.insert(if folded { fold(&text).into_owned() } else { text });
                        }
                        _ => {
                            self.compare(Comparison::Eq, value, item)?;
                        }
                    }
                }
                Ok(Predicate::new(Node::TextIn { value: text, set }))
            }
            _ => {
                let parts: Result<Vec<_>, _> =
                    list.iter().map(|item| self.compare(Comparison::Eq, value, item)).collect();
                Ok(Predicate::or(parts?))
            }
        }
    }

    fn is_null(&self, value: &Operand) -> Result<Predicate, Invalid> {
        let nullable = match (value, self.typed(value)?) {
            (
                _,
                TypedOperand::Number(Number::Field(field))
                | TypedOperand::Bool(Side::Field(field))
                | TypedOperand::List(List::Field(field)),
            ) => Nullable::Field(field),
            (_, TypedOperand::Text(Text { source: Source::Field(field), .. })) => Nullable::Field(field),
            (_, TypedOperand::Time(Moment::Property(time))) => Nullable::Field(time.field),
            (_, TypedOperand::Geometry(GeometrySide::Own)) => Nullable::Geometry,
            (_, TypedOperand::Time(Moment::Span(start, end))) => return Ok(no_ends(start, end)),
            // An id compared with a literal.
            _ => return Ok(Predicate::none()),
        };
        Ok(Predicate::new(Node::IsNull(nullable)))
    }

    fn lists(&self, op: ArrayOp, left: &Operand, right: &Operand) -> Result<Predicate, Invalid> {
        let list = |operand: &Operand| match self.typed(operand)? {
            TypedOperand::List(list) => Ok(list),
            other => Err(wrong(&[operand], format!("{} takes lists, found {}", op.text(), shown(operand, &other)))),
        };
        Ok(match (list(left)?, list(right)?) {
            (List::Literal(a), List::Literal(b)) => Predicate::constant(holds_of_lists(op, &a, &b)),
            (left, right) => Predicate::new(Node::Lists { op, left, right }),
        })
    }
}

/// Rows where neither end of a span has a value: the time is unknown.
fn no_ends(start: Edge, end: Edge) -> Predicate {
    let fields = [start, end].into_iter().filter_map(|edge| match edge {
        Edge::Property(time) => Some(Predicate::new(Node::IsNull(Nullable::Field(time.field)))),
        Edge::At(_) => None,
    });
    let fields: Vec<Predicate> = fields.collect();
    let is_open = |edge: Edge| matches!(edge, Edge::Property(_)) || edge.may_be_open();
    if fields.is_empty() || !(is_open(start) && is_open(end)) { Predicate::none() } else { Predicate::and(fields) }
}

/// A temporal test; one between literals is decided immediately.
fn temporal(op: TemporalOp, left: Moment, right: Moment) -> Predicate {
    let test = TemporalTest::new(op, left, right);
    match test.constant() {
        Some(outcome) => Predicate::constant(outcome == Outcomes::TRUE),
        None => Predicate::new(Node::Temporal(test)),
    }
}
