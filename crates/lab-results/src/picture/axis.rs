//! Scales and their ticks: positions of values, and values to label.

/// The kind of an axis's numbers, for its labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Plain numbers, in short form: 12, 3.4k, 5M.
    Count,
    /// Counts of things, with no tick between two integers.
    Whole,
    /// Microseconds, in the suitable unit: 250 µs, 12 ms, 1.5 s, 3 min.
    Micros,
    /// A share of one, written as percent.
    Share,
    /// Bytes, in powers of 1024.
    Bytes,
    /// Money, two decimals below a hundred and two digits below a tenth.
    Money,
}

/// How values are mapped to an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps for equal differences.
    Linear,
    /// Equal steps for equal ratios; values must be above zero.
    Log,
    /// Equal steps for each halving of the distance to one: percentiles (0.5, 0.9, 0.99, …).
    Tail,
}

/// One axis of a plot.
#[derive(Debug, Clone)]
pub struct Axis {
    /// The name of its values.
    pub title: String,
    /// Its unit.
    pub unit: Unit,
    /// Scale of the axis.
    pub scale: Scale,
    /// First and last value shown.
    pub range: (f64, f64),
}

impl Axis {
    /// Creates an axis that shows all of `values`; a linear one of counts or durations begins at zero.
    pub fn over(title: &str, unit: Unit, scale: Scale, values: impl Iterator<Item = f64>) -> Axis {
        let usable = values.filter(|v| v.is_finite() && (scale == Scale::Linear || *v > 0.0));
        let (min, max) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let (min, max) = if min <= max { (min, max) } else { (1.0, 10.0) };
        let range = match scale {
            Scale::Linear if min >= 0.0 => (0.0, round_up(max)),
            Scale::Linear => (-round_up(-min), round_up(max)),
            Scale::Log => {
                let (low, high) = (log_step(min, false), log_step(max, true));
                // A single value, or equal ones, would leave an axis of zero length.
                (low, if high > low { high } else { low * 10.0 })
            }
            // The scale has no end: 1 would lie at infinity.
            Scale::Tail => (0.0, max.min(0.999_999)),
        };
        Axis { title: title.to_owned(), unit, scale, range }
    }

    /// Returns the position of a value: 0 at the beginning of the axis, 1 at its end, `None` if it is not on the
    /// scale.
    pub fn place(&self, value: f64) -> Option<f64> {
        let (from, to) = (self.laid(self.range.0)?, self.laid(self.range.1)?);
        let at = (self.laid(value)? - from) / (to - from);
        at.is_finite().then_some(at)
    }

    fn laid(&self, value: f64) -> Option<f64> {
        match self.scale {
            Scale::Linear => value.is_finite().then_some(value),
            Scale::Log => (value > 0.0).then(|| value.log10()),
            Scale::Tail => (value < 1.0).then(|| -(1.0 - value).log10()),
        }
    }

    /// Returns values to label, at most about `most` of them.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let (from, to) = self.range;
        match self.scale {
            Scale::Linear => {
                let step = nice_step((to - from) / most.max(1) as f64, self.unit);
                let first = (from / step).ceil() as i64;
                (first..).map(|i| i as f64 * step).take_while(|v| *v <= to + step * 1e-9).take(most * 2 + 2).collect()
            }
            Scale::Log => {
                let decades = (from.log10().floor() as i32)..=(to.log10().ceil() as i32);
                let within = |steps: &[f64]| -> Vec<f64> {
                    let ticks = decades.clone().flat_map(|decade| steps.iter().map(move |s| s * 10f64.powi(decade)));
                    ticks.filter(|v| *v >= from * 0.999 && *v <= to * 1.001).collect()
                };
                let fine = within(&[1.0, 2.0, 5.0]);
                if fine.len() <= most { fine } else { within(&[1.0]) }
            }
            Scale::Tail => {
                let all = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];
                all.into_iter().filter(|v| *v >= from && *v <= to + 1e-12).collect()
            }
        }
    }

    /// Returns the label of a value.
    pub fn label(&self, value: f64) -> String {
        if self.scale == Scale::Tail {
            return format!("p{}", trimmed(value * 100.0, 4));
        }
        label(value, self.unit)
    }
}

/// Formats a value of a unit as people write it.
pub fn label(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Count | Unit::Whole => short(value),
        Unit::Share => format!("{} %", trimmed(value * 100.0, 1)),
        Unit::Micros => {
            let size = value.abs();
            let (divisor, word) = match size {
                s if s >= 120e6 && (s / 60e6).fract() < 1e-9 => (60e6, "min"),
                s if s >= 1e6 => (1e6, "s"),
                s if s >= 1e3 => (1e3, "ms"),
                s if s > 0.0 => (1.0, "µs"),
                _ => return "0".to_owned(),
            };
            format!("{} {word}", trimmed(value / divisor, 2))
        }
        Unit::Bytes => {
            let steps = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
            match steps.iter().find(|(size, _)| value.abs() >= *size as f64) {
                Some((size, word)) => format!("{} {word}", trimmed(value / *size as f64, 1)),
                None => format!("{} B", trimmed(value, 0)),
            }
        }
        Unit::Money if value != 0.0 && value.abs() < 0.1 => {
            // Cents are too coarse for this value, so it gets two significant digits.
            let decimals = (1.0 - value.abs().log10().floor()).min(12.0) as usize;
            trimmed(value, decimals)
        }
        Unit::Money if value.abs() < 100.0 => trimmed(value, 2),
        Unit::Money => short(value),
    }
}

fn short(value: f64) -> String {
    let steps = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match steps.iter().find(|(size, _)| value.abs() >= *size) {
        Some((size, letter)) => format!("{}{letter}", trimmed(value / size, 2)),
        None => trimmed(value, 3),
    }
}

/// Formats with at most this many decimals, without trailing zeros.
fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Returns 1, 2 or 5 times a power of ten (of two, for bytes; of sixty, for minutes) that is at least `rough`.
fn nice_step(rough: f64, unit: Unit) -> f64 {
    if rough <= 0.0 || !rough.is_finite() {
        return 1.0;
    }
    if unit == Unit::Bytes {
        return 2f64.powf(rough.log2().ceil());
    }
    if unit == Unit::Micros && rough > 15e6 {
        let minutes = [30e6, 60e6, 120e6, 300e6, 600e6, 1800e6, 3600e6];
        if let Some(step) = minutes.into_iter().find(|step| *step >= rough) {
            return step;
        }
    }
    let rough = if unit == Unit::Whole { rough.max(1.0) } else { rough };
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|s| s * power).find(|s| *s >= rough * 0.999_999).unwrap_or(power * 10.0)
}

/// Returns the nearest of 1, 2 and 5 times a power of ten that is not above a value, or (`up`) not below it. Rounding
/// is tolerated.
fn log_step(value: f64, up: bool) -> f64 {
    let decade = 10f64.powf(value.log10().floor());
    let mut steps = [0.5, 1.0, 2.0, 5.0, 10.0].map(|step| step * decade).into_iter();
    let found = match up {
        true => steps.find(|step| *step >= value * (1.0 - 1e-9)),
        false => steps.rfind(|step| *step <= value * (1.0 + 1e-9)),
    };
    found.unwrap_or(value)
}

fn round_up(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let step = nice_step(value / 8.0, Unit::Count);
    // Slightly above the value, so that the topmost mark does not touch the frame.
    (value / step * 1.000_000_1).ceil() * step
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_written_as_people_write_them() {
        let micros = |v| label(v, Unit::Micros);
        assert_eq!(
            [micros(0.0), micros(250.0), micros(12_500.0), micros(1.5e6), micros(300e6)],
            ["0", "250 µs", "12.5 ms", "1.5 s", "5 min"]
        );
        assert_eq!(
            [label(950.0, Unit::Count), label(3_400.0, Unit::Count), label(5e6, Unit::Count)],
            ["950", "3.4k", "5M"]
        );
        assert_eq!(label(3.0 * 1024.0 * 1024.0, Unit::Bytes), "3 MiB");
        assert_eq!(label(0.125, Unit::Share), "12.5 %");
        let tail = Axis { title: String::new(), unit: Unit::Share, scale: Scale::Tail, range: (0.0, 0.9999) };
        assert_eq!(
            tail.ticks(9).iter().map(|t| tail.label(*t)).collect::<Vec<_>>(),
            ["p0", "p50", "p90", "p99", "p99.9", "p99.99"]
        );
    }

    proptest! {
        #[test]
        fn ticks_lie_on_the_axis_in_order_and_are_few(
            values in prop::collection::vec(0.001f64..1e12, 1..20),
            log in any::<bool>(),
            unit in prop::sample::select(vec![Unit::Count, Unit::Whole, Unit::Micros, Unit::Bytes, Unit::Money]),
        ) {
            let scale = if log { Scale::Log } else { Scale::Linear };
            let axis = Axis::over("", unit, scale, values.iter().copied());
            let ticks = axis.ticks(8);
            prop_assert!(!ticks.is_empty() && ticks.len() <= 18, "{ticks:?} of {:?}", axis.range);
            prop_assert!(ticks.is_sorted());
            for tick in ticks {
                let at = axis.place(tick).unwrap();
                prop_assert!((-1e-6..=1.000_01).contains(&at), "{tick} at {at}");
            }
            for value in values {
                let at = axis.place(value).unwrap();
                prop_assert!((-1e-9..=1.000_000_1).contains(&at), "{value} at {at} of {:?}", axis.range);
            }
        }
    }
}
