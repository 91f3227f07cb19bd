//! The most frequent values. Up to a bound of distinct values, each is counted. Beyond it counters are reduced
//! together (Misra and Gries, 1982; merged as by Agarwal et al., 2012).
//!
//! A reduction subtracts the same count from every counter. So the resulting counts are lower bounds, and no true
//! count exceeds its own by more than all reductions have subtracted.

use super::bytes::{Malformed, Reader};
use crate::by::ByValue;
use crate::function::FunctionValue;
use meridian_model::FieldType;
use std::collections::HashMap;

/// Max distinct values that are counted.
pub(super) const VALUES_MAX: usize = 16_384;
/// Max counters left by a reduction.
const KEPT: usize = VALUES_MAX / 2;
/// Memory of a counter besides its text.
const COUNTER_BYTES: usize = 96;

/// The values of a field in one group. Texts have their own map, which is searched without a copy.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frequent {
    texts: HashMap<Box<str>, u64>,
    others: HashMap<ByValue, u64>,
    /// The total amount subtracted from each counter by reductions.
    error: u64,
    text_bytes: usize,
}

impl Frequent {
    pub(super) fn none() -> Frequent {
        Frequent::default()
    }

    pub(super) fn add_text(&mut self, text: &str) {
        self.add_texts(text, 1);
    }

    pub(super) fn add_int(&mut self, n: i64) {
        self.add_others(ByValue::Int(n), 1);
    }

    pub(super) fn add_bool(&mut self, flag: bool) {
        self.add_others(ByValue::Bool(flag), 1);
    }

    fn add_texts(&mut self, text: &str, times: u64) {
        match self.texts.get_mut(text) {
            Some(count) => *count = count.saturating_add(times),
            None => {
                self.text_bytes += text.len();
                self.texts.insert(text.into(), times);
                self.reduce();
            }
        }
    }

    fn add_others(&mut self, value: ByValue, times: u64) {
        let count = self.others.entry(value).or_default();
        *count = count.saturating_add(times);
        self.reduce();
    }

    /// Reduces all counters so that at most [`KEPT`] remain, if there are too many.
    fn reduce(&mut self) {
        if self.texts.len() + self.others.len() <= VALUES_MAX {
            return;
        }
        let mut counts: Vec<u64> = self.texts.values().chain(self.others.values()).copied().collect();
        // The largest of the dropped counters.
        let (_, taken, _) = counts.select_nth_unstable_by(KEPT, |a, b| b.cmp(a));
        let taken = *taken;
        self.error = self.error.saturating_add(taken);
        let keeps = |count: &mut u64| {
            *count = count.saturating_sub(taken);
            *count > 0
        };
        self.texts.retain(|_, count| keeps(count));
        self.others.retain(|_, count| keeps(count));
        self.text_bytes = self.texts.keys().map(|text| text.len()).sum();
    }

    pub(super) fn merge(&mut self, other: &Frequent) {
        self.error = self.error.saturating_add(other.error);
        // All of them before a reduction: in the middle of a merge, it would depend on the map's order.
        for (text, times) in &other.texts {
            match self.texts.get_mut(text) {
                Some(count) => *count = count.saturating_add(*times),
                None => {
                    self.text_bytes += text.len();
                    self.texts.insert(text.clone(), *times);
                }
            }
        }
        for (value, times) in &other.others {
            let count = self.others.entry(value.clone()).or_default();
            *count = count.saturating_add(*times);
        }
        self.reduce();
    }

    pub(super) fn bytes(&self) -> usize {
        (self.texts.capacity() + self.others.capacity()) * COUNTER_BYTES + self.text_bytes
    }

    /// The most frequent values, ties by smaller value first; and the max by which a count may be too low.
    pub(super) fn top(&self, k: usize) -> (FunctionValue, f64) {
        let mut all = self.counters();
        all.sort_by(|(a, many), (b, more)| more.cmp(many).then_with(|| a.cmp(b)));
        all.truncate(k);
        (FunctionValue::Top(all.into()), self.error as f64)
    }

    fn counters(&self) -> Vec<(ByValue, u64)> {
        let texts = self.texts.iter().map(|(text, count)| (ByValue::Text(text.to_string()), *count));
        texts.chain(self.others.iter().map(|(value, count)| (value.clone(), *count))).collect()
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut all = self.counters();
        all.sort_unstable();
        out.extend(self.error.to_le_bytes());
        out.extend((all.len() as u32).to_le_bytes());
        for (value, count) in all {
            match value {
                ByValue::Text(text) => {
                    out.extend((text.len() as u32).to_le_bytes());
                    out.extend_from_slice(text.as_bytes());
                }
                ByValue::Int(n) => out.extend(n.to_le_bytes()),
                ByValue::Bool(flag) => out.push(flag.into()),
                ByValue::Null => {}
            }
            out.extend(count.to_le_bytes());
        }
    }

    pub(super) fn decode(field: FieldType, bytes: &[u8]) -> Result<Frequent, Malformed> {
        let mut reader = Reader(bytes);
        let mut all = Frequent { error: reader.u64()?, ..Frequent::none() };
        for _ in 0..reader.entries(VALUES_MAX)? {
            match field {
                FieldType::Text => {
                    let length = reader.u32()? as usize;
                    let text = std::str::from_utf8(reader.take(length)?).map_err(|_| Malformed)?;
                    let count = reader.u64()?;
                    all.add_texts(text, count);
                }
                FieldType::Int => {
                    let (n, count) = (reader.i64()?, reader.u64()?);
                    all.add_others(ByValue::Int(n), count);
                }
                FieldType::Bool => {
                    let (flag, count) = (reader.byte()? != 0, reader.u64()?);
                    all.add_others(ByValue::Bool(flag), count);
                }
                _ => return Err(Malformed),
            }
        }
        reader.end().map(|()| all)
    }
}
