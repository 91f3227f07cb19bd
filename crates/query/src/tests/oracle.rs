//! The oracle of aggregates: what is asked, and what plain lists of events answer.

use super::world::*;
use crate::aggregate::Group;
use crate::by::ByValue;
use crate::function::{Function, FunctionValue};
use crate::windows::{Window, Windows};
use meridian_model::Seq;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn all_functions() -> Vec<Function> {
    vec![
        Function::Count,
        Function::CountOf(2),
        Function::Sum(2),
        Function::Avg(2),
        Function::Min(2),
        Function::Max(2),
        Function::CountOf(3),
        Function::Sum(3),
        Function::Avg(3),
        Function::Min(3),
        Function::Max(3),
    ]
}

/// Groups without a window come last.
pub(super) type GroupKey = (bool, Option<Window>, Vec<ByValue>);

pub(super) fn group_of(event: &Event, windows: Option<&Windows>, by: &[usize]) -> (Option<Window>, Vec<ByValue>) {
    let window = windows.filter(|_| event.start != i64::MIN).map(|w| w.window_of(event.start));
    let by = by.iter().map(|by| match by {
        2 => event.n.map_or(ByValue::Null, ByValue::Int),
        4 => event.s.clone().map_or(ByValue::Null, ByValue::Text),
        _ => event.b.map_or(ByValue::Null, ByValue::Bool),
    });
    (window, by.collect())
}

/// Fields to group by.
pub(super) fn by_fields() -> impl Strategy<Value = Vec<usize>> {
    prop::sample::select(vec![vec![], vec![2], vec![4], vec![5], vec![2, 5], vec![4, 2], vec![5, 4, 2]])
}

/// [`all_functions`], possibly with those that read every value.
pub(super) fn functions() -> impl Strategy<Value = Vec<Function>> {
    prop::sample::select(vec![all_functions(), [all_functions(), of_values()].concat()])
}

/// Functions that read every value.
fn of_values() -> Vec<Function> {
    let names = "median(n),percentile(x,95),percentile(n,0),percentile(x,100),distinct(n),distinct(s),distinct(x),top(s,2),top(n,3),top(b,5)";
    Function::parse(names, &schema_of(Kind { places: Places::None, times: Times::None, made_ids: false })).unwrap()
}

/// Compares a group with the plain totals of its events.
pub(super) fn same(group: &Group, events: &[&Event]) -> Result<(), TestCaseError> {
    prop_assert_eq!(group.count, events.len() as u64);
    let ints: Vec<i64> = events.iter().filter_map(|e| e.n).collect();
    let floats: Vec<f64> = events.iter().filter_map(|e| e.x).collect();
    let int = |n: Option<i64>| n.map_or(FunctionValue::Null, |n| FunctionValue::Int(n.into()));
    let float = |x: Option<f64>| x.map_or(FunctionValue::Null, FunctionValue::Float);
    let v = &group.values;
    prop_assert_eq!(&v[0], &FunctionValue::Int(events.len() as i128));
    prop_assert_eq!(&v[1], &FunctionValue::Int(ints.len() as i128));
    prop_assert_eq!(&v[2], &int((!ints.is_empty()).then(|| ints.iter().sum())));
    prop_assert_eq!(&v[4], &int(ints.iter().min().copied()));
    prop_assert_eq!(&v[5], &int(ints.iter().max().copied()));
    prop_assert_eq!(&v[6], &FunctionValue::Int(floats.len() as i128));
    prop_assert_eq!(&v[9], &float(floats.iter().copied().reduce(f64::min)));
    prop_assert_eq!(&v[10], &float(floats.iter().copied().reduce(f64::max)));
    let near = |value: &FunctionValue, expected: Option<f64>, magnitude: f64| match (value, expected) {
        (FunctionValue::Float(x), Some(y)) => (x - y).abs() <= 2e-12 * magnitude,
        (FunctionValue::Null, None) => true,
        _ => false,
    };
    let (sum, magnitude) = (floats.iter().sum::<f64>(), floats.iter().map(|x| x.abs()).sum::<f64>());
    let any = !floats.is_empty();
    prop_assert!(near(&v[7], any.then_some(sum), magnitude), "{:?} is not {}", v[7], sum);
    prop_assert!(near(&v[8], any.then(|| sum / floats.len() as f64), magnitude));
    let mean = (!ints.is_empty()).then(|| ints.iter().sum::<i64>() as f64 / ints.len() as f64);
    prop_assert!(near(&v[3], mean, 1.0));
    // So few values are never estimated.
    prop_assert!(group.errors.iter().all(|error| *error == 0.0) && group.errors.len() == v.len());
    match v.len() > all_functions().len() {
        true => same_values(&v[all_functions().len()..], events),
        false => Ok(()),
    }
}

/// Compares the results of [`of_values`] with lists of values.
fn same_values(v: &[FunctionValue], events: &[&Event]) -> Result<(), TestCaseError> {
    let (mut ints, mut floats): (Vec<i64>, Vec<f64>) =
        (events.iter().filter_map(|e| e.n).collect(), events.iter().filter_map(|e| e.x).collect());
    ints.sort_unstable();
    floats.sort_unstable_by(f64::total_cmp);
    let at = |len: usize, percent: usize| (len * percent).div_ceil(100).max(1) - 1;
    let int =
        |percent| ints.get(at(ints.len(), percent)).map_or(FunctionValue::Null, |n| FunctionValue::Int((*n).into()));
    let float =
        |percent| floats.get(at(floats.len(), percent)).map_or(FunctionValue::Null, |x| FunctionValue::Float(*x));
    prop_assert_eq!([&v[0], &v[1]], [&int(50), &float(95)]);
    prop_assert_eq!([&v[2], &v[3]], [&int(0), &float(100)]);
    let some = |values: usize| FunctionValue::Int(values as i128);
    let texts: BTreeSet<_> = events.iter().filter_map(|e| e.s.as_ref()).collect();
    let bits: BTreeSet<u64> = floats.iter().map(|x| (x + 0.0).to_bits()).collect();
    let distinct = [some(ints.iter().collect::<BTreeSet<_>>().len()), some(texts.len()), some(bits.len())];
    prop_assert_eq!(&v[4..7], &distinct[..]);
    let top = |k: usize, values: Vec<ByValue>| {
        let mut counts: BTreeMap<ByValue, u64> = BTreeMap::new();
        values.into_iter().for_each(|value| *counts.entry(value).or_default() += 1);
        let mut all: Vec<_> = counts.into_iter().collect();
        // A stable sort: ties stay in order.
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        all.truncate(k);
        FunctionValue::Top(all.into())
    };
    prop_assert_eq!(&v[7], &top(2, events.iter().filter_map(|e| e.s.clone().map(ByValue::Text)).collect()));
    prop_assert_eq!(&v[8], &top(3, ints.iter().map(|n| ByValue::Int(*n)).collect()));
    prop_assert_eq!(&v[9], &top(5, events.iter().filter_map(|e| e.b.map(ByValue::Bool)).collect()));
    Ok(())
}

pub(super) fn event(n: i64, start: i64) -> Event {
    Event {
        id: String::new(),
        spot: Spot::Point(f64::from((n % 300) as i32) * 0.5, f64::from((n % 100) as i32) * 0.5),
        start,
        end: start,
        n: Some(n),
        x: Some(n as f64 * 0.5),
        s: None,
        b: None,
        seq: Seq(0),
    }
}
