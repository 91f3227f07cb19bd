//! One value per partition of a collection: positions in their logs, or sequence numbers.
//!
//! For a collection with one partition, text and JSON are those of the single value.

use crate::error::Invalid;
use crate::seq::{Seq, SeqLayout};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The separator of values in a text.
const BETWEEN: char = '-';

/// One value per partition, in order. A partition without a value counts as 0: none yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Vector<T>(Values<T>);

/// Progress of each partition's log.
pub type Positions = Vector<u64>;

/// A snapshot, or a place in a stream: what is visible of each partition.
pub type Seqs = Vector<Seq>;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Values<T> {
    One(T),
    /// Any number of values. A vector built here never has exactly one; one that was parsed may.
    Many(Box<[T]>),
}

impl<T> Values<T> {
    fn as_slice(&self) -> &[T] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Many(values) => values,
        }
    }
}

impl<T: PartialEq> PartialEq for Values<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Eq> Eq for Values<T> {}

impl<T: std::hash::Hash> std::hash::Hash for Values<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl<T: Default> Default for Vector<T> {
    fn default() -> Self {
        Vector::one(T::default())
    }
}

impl<T> FromIterator<T> for Vector<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut values: Vec<T> = values.into_iter().collect();
        match values.pop() {
            Some(only) if values.is_empty() => Vector::one(only),
            Some(last) => {
                values.push(last);
                Vector(Values::Many(values.into()))
            }
            None => Vector(Values::Many(Box::new([]))),
        }
    }
}

impl<T> Vector<T> {
    /// The vector of a collection with one partition.
    pub fn one(value: T) -> Vector<T> {
        Vector(Values::One(value))
    }

    /// The values.
    pub fn as_slice(&self) -> &[T] {
        self.0.as_slice()
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }
}

impl<T: Copy + Default + Ord> Vector<T> {
    /// The value of a partition.
    pub fn at(&self, partition: usize) -> T {
        self.as_slice().get(partition).copied().unwrap_or_default()
    }

    /// A copy with another value for a partition.
    #[must_use]
    pub fn with(&self, partition: usize, value: T) -> Vector<T> {
        if self.len() == 1 && partition == 0 {
            // By far the most frequent case: nothing is allocated.
            return Vector::one(value);
        }
        let others = (0..self.len().max(partition + 1)).map(|n| if n == partition { value } else { self.at(n) });
        others.collect()
    }

    /// Transforms each value.
    pub fn map<U>(&self, mut change: impl FnMut(T) -> U) -> Vector<U> {
        match self.as_slice() {
            &[only] => Vector::one(change(only)),
            several => several.iter().copied().map(change).collect(),
        }
    }

    /// Whether no value of `other` is later, in any partition.
    pub fn covers(&self, other: &Vector<T>) -> bool {
        (0..self.len().max(other.len())).all(|n| self.at(n) >= other.at(n))
    }

    /// The later value of each partition.
    #[must_use]
    pub fn later(&self, other: &Vector<T>) -> Vector<T> {
        (0..self.len().max(other.len())).map(|n| self.at(n).max(other.at(n))).collect()
    }

    /// The earlier value of each partition.
    #[must_use]
    pub fn earlier(&self, other: &Vector<T>) -> Vector<T> {
        (0..self.len().max(other.len())).map(|n| self.at(n).min(other.at(n))).collect()
    }
}

impl Positions {
    /// The snapshot that shows all writes up to these positions.
    pub fn ends(&self) -> Seqs {
        self.map(Seq::end_of)
    }

    /// Parses the output of [`fmt::Display`].
    pub fn read(text: &str) -> Option<Positions> {
        read(text, |text| text.parse().ok())
    }
}

impl Seqs {
    /// The number layout of a collection with this many partitions.
    pub fn layout(&self) -> SeqLayout {
        SeqLayout::of(self.len())
    }

    /// The place after an event.
    #[must_use]
    pub fn past(&self, event: Seq) -> Seqs {
        self.with(usize::from(self.layout().partition(event)), event)
    }

    /// The ids of the numbers, as a text.
    pub fn to_id(&self) -> String {
        self.to_string()
    }

    /// Parses the output of [`Seqs::to_id`].
    pub fn from_id(text: &str) -> Result<Seqs, Invalid> {
        let mut wrong = None;
        let found = read(text, |text| Seq::from_id(text).map_err(|e| wrong = Some(e)).ok());
        let many = || Invalid::field("id", "more numbers than a collection can have partitions");
        found.ok_or_else(|| wrong.unwrap_or_else(many))
    }
}

/// Parses the values of a text; bounded, as it comes from clients.
fn read<T>(text: &str, mut value: impl FnMut(&str) -> Option<T>) -> Option<Vector<T>> {
    let most = SeqLayout::Partitioned.partitions_max();
    let values = text.split(BETWEEN).take(most + 1).map(&mut value).collect::<Option<Vec<T>>>()?;
    (values.len() <= most).then(|| values.into_iter().collect())
}

impl<T: fmt::Display> fmt::Display for Vector<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, value) in self.as_slice().iter().enumerate() {
            if n > 0 {
                write!(f, "{BETWEEN}")?;
            }
            value.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vectors() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(any::<u64>(), 1..=256)
    }

    proptest! {
        #[test]
        fn texts_and_json_come_back(values in vectors()) {
            let positions: Positions = values.iter().copied().collect();
            prop_assert_eq!(Positions::read(&positions.to_string()), Some(positions.clone()));
            prop_assert_eq!(&serde_json::from_str::<Positions>(&serde_json::to_string(&positions).unwrap()).unwrap(), &positions);
            let seqs = positions.map(Seq);
            prop_assert_eq!(Seqs::from_id(&seqs.to_id()), Ok(seqs.clone()));
            if values.len() == 1 {
                prop_assert_eq!(positions.to_string(), values[0].to_string());
                prop_assert_eq!(serde_json::to_value(&positions).unwrap(), serde_json::json!(values[0]));
                prop_assert_eq!(seqs.to_id(), Seq(values[0]).to_id());
            }
        }

        #[test]
        fn a_vector_covers_what_is_after_it_in_no_partition(a in vectors(), b in vectors()) {
            let (a, b): (Positions, Positions) = (a.into_iter().collect(), b.into_iter().collect());
            let (later, earlier) = (a.later(&b), a.earlier(&b));
            prop_assert!(later.covers(&a) && later.covers(&b) && a.covers(&earlier) && b.covers(&earlier));
            prop_assert_eq!(a.covers(&b), later == a || (later.as_slice().iter().skip(a.len()).all(|n| *n == 0) && later.as_slice()[..a.len()] == *a.as_slice()));
        }

        #[test]
        fn an_event_moves_its_own_partition(many in prop::collection::vec(0u64..1 << 30, 2..=256), position in 1u64 << 31..1 << 40, ordinal in 0usize..65_536) {
            let at = many.iter().copied().collect::<Positions>().ends();
            let partition = ordinal % many.len();
            let event = SeqLayout::Partitioned.seq(position, partition as u8, ordinal);
            let past = at.past(event);
            prop_assert!(past.covers(&at));
            for n in 0..many.len() {
                prop_assert_eq!(past.at(n), if n == partition { event } else { at.at(n) });
            }
        }
    }

    #[test]
    fn an_event_of_a_single_partition_is_its_place_however_large_its_batch() {
        let event = Seq::new(3, 200_000);
        assert_eq!(Seqs::one(Seq(7)).past(event), Seqs::one(event));
    }

    #[test]
    fn what_is_no_vector_is_refused() {
        for text in ["", "-", "1-", "x", "1--2", "18446744073709551616", &vec!["1"; 257].join("-")] {
            assert_eq!(Positions::read(text), None, "{text}");
        }
        assert!(
            Seqs::from_id("0000000000000-x").is_err() && Seqs::from_id(&vec!["0000000000000"; 257].join("-")).is_err()
        );
    }
}
