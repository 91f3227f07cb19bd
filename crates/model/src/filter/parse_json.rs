//! CQL2 JSON.

use super::expr::{ArrayOp, Comparison, Expr, IntervalEnd, Operand, SpatialOp, TemporalOp};
use super::literal;
use super::parse_text::DEPTH_MAX;
use crate::error::Invalid;
use crate::error::shorten;
use geo_types::{Coord, Geometry, GeometryCollection, MultiLineString, MultiPoint, MultiPolygon, Point};
use serde_json::{Map, Value};

/// Max values (conditions, operands, positions) of a JSON filter: about what 64 KiB of text can hold.
pub const VALUES_MAX: usize = 20_000;

/// Parses CQL2 JSON. An error names the path of the offending value, such as `$.args[0].op`.
pub fn parse_json(value: &Value) -> Result<Expr, Invalid> {
    parse_json_within(value, VALUES_MAX)
}

/// The same with another limit on values.
pub(crate) fn parse_json_within(value: &Value, values_max: usize) -> Result<Expr, Invalid> {
    let mut parser = Parser { path: vec!["$".to_owned()], values: 0, values_max };
    parser.expr(value)
}

struct Parser {
    /// Path to the current value.
    path: Vec<String>,
    values: usize,
    values_max: usize,
}

/// Describes the value found, for messages.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => format!("the number {n}"),
        Value::String(s) => format!("the text {:?}", shorten(s)),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(members) => match members.keys().next() {
            Some(key) => format!("an object with {:?}", shorten(key)),
            None => "an empty object".to_owned(),
        },
    }
}

impl Parser {
    fn wrong(&self, detail: impl std::fmt::Display) -> Invalid {
        Invalid::field("filter", format!("at {}: {detail}", self.path.concat()))
    }

    fn unexpected(&self, found: &Value, expected: &str) -> Invalid {
        self.wrong(format!("found {}, expected {expected}", shown(found)))
    }

    /// Runs a rule one level down.
    fn at<T>(&mut self, step: String, rule: impl FnOnce(&mut Self) -> Result<T, Invalid>) -> Result<T, Invalid> {
        // Counted on entry: a deep or wide filter is rejected before it is built.
        self.values += 1;
        if self.values > self.values_max {
            return Err(self.wrong(format!("the filter has more than {} values", self.values_max)));
        }
        // Two path steps (`.args` and `[0]`) per level, plus some for the coordinates of a geometry at the bottom.
        if self.path.len() > 2 * DEPTH_MAX + 8 {
            return Err(self.wrong(format!("the filter is nested more than {DEPTH_MAX} deep")));
        }
        self.path.push(step);
        let result = rule(self);
        self.path.pop();
        result
    }

    fn each<T>(
        &mut self,
        items: &[Value],
        mut rule: impl FnMut(&mut Self, &Value) -> Result<T, Invalid>,
    ) -> Result<Vec<T>, Invalid> {
        items.iter().enumerate().map(|(i, item)| self.at(format!("[{i}]"), |p| rule(p, item))).collect()
    }

    fn expr(&mut self, value: &Value) -> Result<Expr, Invalid> {
        match value {
            Value::Bool(b) => Ok(Expr::Bool(*b)),
            Value::Object(members) if members.contains_key("op") => {
                let op = members.get("op").and_then(Value::as_str);
                let Some(op) = op else {
                    return self.at(".op".to_owned(), |p| Err(p.unexpected(&members["op"], "the name of an operator")));
                };
                let Some(args) = members.get("args") else {
                    return Err(self.wrong(format!("the operator {:?} has no \"args\"", shorten(op))));
                };
                let Value::Array(items) = args else {
                    return self.at(".args".to_owned(), |p| Err(p.unexpected(args, "an array")));
                };
                self.operator(op, items)
            }
            _ => Err(self.unexpected(value, "a condition: true, false, or an object with \"op\" and \"args\"")),
        }
    }

    fn operator(&mut self, op: &str, args: &[Value]) -> Result<Expr, Invalid> {
        let lower = op.to_ascii_lowercase();
        match lower.as_str() {
            "and" | "or" => {
                if args.is_empty() {
                    return Err(self.wrong(format!("{lower:?} needs at least one argument")));
                }
                let mut parts = self.at(".args".to_owned(), |p| p.each(args, Parser::expr))?;
                return Ok(match parts.len() {
                    1 => parts.remove(0),
                    _ if lower == "and" => Expr::And(parts),
                    _ => Expr::Or(parts),
                });
            }
            "not" => {
                let [inner] = self.exactly(&lower, args)?;
                return Ok(Expr::Not(Box::new(self.argument(0, |p| p.expr(inner))?)));
            }
            "isnull" => {
                let [value] = self.exactly(&lower, args)?;
                return Ok(Expr::IsNull(self.argument(0, |p| p.operand(value))?));
            }
            "like" => {
                let [value, pattern] = self.operands(&lower, args)?;
                return Ok(Expr::Like { value, pattern });
            }
            "between" => {
                let [value, low, high] = self.operands(&lower, args)?;
                return Ok(Expr::Between { value, low, high });
            }
            "in" => {
                let [value, list] = self.exactly(&lower, args)?;
                let value = self.argument(0, |p| p.operand(value))?;
                let list = self.argument(1, |p| match list {
                    Value::Array(items) if !items.is_empty() => p.each(items, Parser::operand),
                    other => Err(p.unexpected(other, "an array of at least one value")),
                })?;
                return Ok(Expr::In { value, list });
            }
            _ => {}
        }
        if let Some(op) = if lower == "!=" { Some(Comparison::Ne) } else { Comparison::from_json(op) } {
            let [left, right] = self.operands(&lower, args)?;
            Ok(Expr::Compare { op, left, right })
        } else if let Some(op) = SpatialOp::from_json(op) {
            let [left, right] = self.operands(&lower, args)?;
            Ok(Expr::Spatial { op, left, right })
        } else if let Some(op) = TemporalOp::from_json(op) {
            let [left, right] = self.operands(&lower, args)?;
            Ok(Expr::Temporal { op, left, right })
        } else if let Some(op) = ArrayOp::from_json(op) {
            let [left, right] = self.operands(&lower, args)?;
            Ok(Expr::Array { op, left, right })
        } else {
            self.at(".op".to_owned(), |p| {
                Err(p.wrong(format!(
                    "found the operator {:?}, expected and, or, not, =, <>, <, <=, >, >=, like, between, in, isNull, or a function that begins with s_, t_ or a_",
                    shorten(op)
                )))
            })
        }
    }

    fn exactly<'v, const N: usize>(&self, op: &str, args: &'v [Value]) -> Result<&'v [Value; N], Invalid> {
        args.try_into().map_err(|_| self.wrong(format!("{op:?} has {} arguments, expected {N}", args.len())))
    }

    /// Runs a rule at `.args[i]`.
    fn argument<T>(&mut self, i: usize, rule: impl FnOnce(&mut Self) -> Result<T, Invalid>) -> Result<T, Invalid> {
        self.at(".args".to_owned(), |p| p.at(format!("[{i}]"), rule))
    }

    fn operands<const N: usize>(&mut self, op: &str, args: &[Value]) -> Result<[Operand; N], Invalid> {
        let args = self.exactly::<N>(op, args)?;
        let operands = self.at(".args".to_owned(), |p| p.each(args, Parser::operand))?;
        operands.try_into().map_err(|_| self.wrong("wrong number of arguments"))
    }

    fn operand(&mut self, value: &Value) -> Result<Operand, Invalid> {
        let expected = "a value, or an object with \"property\", \"date\", \"timestamp\", \"interval\", \"bbox\", \"type\" (a geometry) or \"op\" (casei)";
        match value {
            Value::String(text) => Ok(Operand::Text(text.clone())),
            Value::Bool(b) => Ok(Operand::Bool(*b)),
            Value::Number(n) => match (n.as_i64(), n.as_f64()) {
                // Whole numbers stay whole: as a float, an id beyond 2^53 would equal its neighbour.
                (Some(n), _) => Ok(Operand::Int(n)),
                (None, Some(x)) if x.is_finite() => Ok(Operand::Float(x)),
                _ => Err(self.unexpected(value, "a finite number")),
            },
            Value::Array(items) => self.each(items, Parser::operand).map(Operand::List),
            Value::Object(members) => {
                let member = |name: &str| members.get(name).map(|v| (format!(".{name}"), v));
                if let Some((step, name)) = member("property") {
                    self.at(step, |p| p.text(name, "the name of a property")).map(Operand::Property)
                } else if let Some((step, date)) = member("date") {
                    self.at(step, |p| p.read(date, "a date", literal::date)).map(Operand::Date)
                } else if let Some((step, instant)) = member("timestamp") {
                    self.at(step, |p| p.read(instant, "an instant", literal::timestamp)).map(Operand::Timestamp)
                } else if let Some((step, ends)) = member("interval") {
                    self.at(step, |p| p.interval(ends))
                } else if let Some((step, sides)) = member("bbox").filter(|_| !members.contains_key("type")) {
                    self.at(step, |p| p.bbox(sides))
                } else if members.contains_key("type") {
                    self.geometry(members).map(Operand::Geometry)
                } else if let Some((step, op)) = member("op") {
                    if !op.as_str().is_some_and(|op| op.eq_ignore_ascii_case("casei")) {
                        return self.at(step, |p| {
                            Err(p.unexpected(op, "casei: other functions and arithmetic are not supported"))
                        });
                    }
                    match members.get("args") {
                        Some(Value::Array(args)) if args.len() == 1 => {
                            self.argument(0, |p| p.operand(&args[0])).map(|o| Operand::Casei(Box::new(o)))
                        }
                        _ => Err(self.wrong("\"casei\" needs \"args\", an array of one")),
                    }
                } else {
                    Err(self.unexpected(value, expected))
                }
            }
            Value::Null => Err(self.unexpected(value, expected)),
        }
    }

    fn text(&self, value: &Value, expected: &str) -> Result<String, Invalid> {
        match value {
            Value::String(text) if !text.is_empty() => Ok(text.clone()),
            _ => Err(self.unexpected(value, expected)),
        }
    }

    /// Parses a text with a function that describes its errors.
    fn read<T>(&self, value: &Value, expected: &str, reader: impl Fn(&str) -> Result<T, String>) -> Result<T, Invalid> {
        let text = value.as_str().ok_or_else(|| self.unexpected(value, expected))?;
        reader(text).map_err(|e| self.wrong(e))
    }

    fn interval(&mut self, ends: &Value) -> Result<Operand, Invalid> {
        let two = ends.as_array().filter(|ends| ends.len() == 2);
        let Some([start, end]) = two.map(Vec::as_slice) else {
            return Err(self.unexpected(ends, "an array of a start and an end"));
        };
        let start = self.at("[0]".to_owned(), |p| p.interval_end(start))?;
        let end = self.at("[1]".to_owned(), |p| p.interval_end(end))?;
        literal::check_interval(&start, &end).map_err(|e| self.wrong(e))?;
        Ok(Operand::Interval(start, end))
    }

    fn interval_end(&mut self, value: &Value) -> Result<IntervalEnd, Invalid> {
        let expected = "a date, an instant, \"..\" for an open end, or a property";
        if let Value::Object(_) = value {
            return match self.operand(value)? {
                Operand::Property(name) => Ok(IntervalEnd::Property(name)),
                Operand::Date(date) => Ok(IntervalEnd::Date(date)),
                Operand::Timestamp(t) => Ok(IntervalEnd::Timestamp(t)),
                _ => Err(self.unexpected(value, expected)),
            };
        }
        self.read(value, expected, literal::interval_end)
    }

    fn numbers(&mut self, value: &Value, expected: &str) -> Result<Vec<f64>, Invalid> {
        let Value::Array(items) = value else {
            return Err(self.unexpected(value, expected));
        };
        self.each(items, |p, item| {
            item.as_f64().filter(|x| x.is_finite()).ok_or_else(|| p.unexpected(item, "a number"))
        })
    }

    fn bbox(&mut self, value: &Value) -> Result<Operand, Invalid> {
        let numbers = self.numbers(value, "an array of 4 numbers")?;
        literal::bbox(&numbers).map(Operand::Bbox).map_err(|e| self.wrong(e))
    }

    fn geometry(&mut self, members: &Map<String, Value>) -> Result<Geometry<f64>, Invalid> {
        let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
        if kind == "GeometryCollection" {
            let Some(Value::Array(items)) = members.get("geometries") else {
                return Err(self.wrong("a GeometryCollection needs \"geometries\", an array"));
            };
            if items.is_empty() {
                return Err(self.wrong("the GeometryCollection is empty and has no place"));
            }
            let members = self.at(".geometries".to_owned(), |p| {
                p.each(items, |p, item| match item {
                    Value::Object(members) => p.geometry(members),
                    other => Err(p.unexpected(other, "a geometry")),
                })
            })?;
            return Ok(Geometry::GeometryCollection(GeometryCollection(members)));
        }
        let Some(coordinates) = members.get("coordinates") else {
            return Err(self.wrong(format!(
                "found an object of type {:?} without \"coordinates\", expected a GeoJSON geometry",
                shorten(kind)
            )));
        };
        self.at(".coordinates".to_owned(), |p| {
            let made = match kind {
                "Point" => Ok(Geometry::Point(Point(p.position(coordinates)?))),
                "LineString" => literal::line(p.positions(coordinates)?).map(Geometry::LineString),
                "Polygon" => literal::polygon(p.rings(coordinates)?).map(Geometry::Polygon),
                "MultiPoint" => {
                    let points = p.positions(coordinates)?.into_iter().map(Point).collect();
                    Ok(Geometry::MultiPoint(MultiPoint(points)))
                }
                "MultiLineString" => p
                    .rings(coordinates)?
                    .into_iter()
                    .map(literal::line)
                    .collect::<Result<_, _>>()
                    .map(|l| Geometry::MultiLineString(MultiLineString(l))),
                "MultiPolygon" => p
                    .list(coordinates, Parser::rings)?
                    .into_iter()
                    .map(literal::polygon)
                    .collect::<Result<_, _>>()
                    .map(|l| Geometry::MultiPolygon(MultiPolygon(l))),
                _ => Err(format!("found the type {:?}, expected a GeoJSON geometry type", shorten(kind))),
            };
            made.map_err(|e| p.wrong(e))
        })
    }

    /// A non-empty array.
    fn list<T>(
        &mut self,
        value: &Value,
        rule: impl FnMut(&mut Self, &Value) -> Result<T, Invalid>,
    ) -> Result<Vec<T>, Invalid> {
        match value {
            Value::Array(items) if !items.is_empty() => self.each(items, rule),
            other => Err(self.unexpected(other, "an array of at least one")),
        }
    }

    fn position(&mut self, value: &Value) -> Result<Coord<f64>, Invalid> {
        let numbers = self.numbers(value, "a position: [longitude, latitude]")?;
        match *numbers.as_slice() {
            // Height and measure are dropped: filters are planar.
            [x, y] | [x, y, _] | [x, y, _, _] => Ok(Coord { x, y }),
            _ => Err(self.unexpected(value, "a position: [longitude, latitude]")),
        }
    }

    fn positions(&mut self, value: &Value) -> Result<Vec<Coord<f64>>, Invalid> {
        self.list(value, Parser::position)
    }

    fn rings(&mut self, value: &Value) -> Result<Vec<Vec<Coord<f64>>>, Invalid> {
        self.list(value, Parser::positions)
    }
}
