//! Summaries against lists of all values, however they are split.

use super::*;
use crate::by::ByValue;
use meridian_model::{Field, Schema};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn schema() -> Schema {
    let field = |name: &str, kind| Field { name: name.to_owned(), kind, required: false, title: None };
    let fields = vec![field("n", FieldType::Int), field("x", FieldType::Float), field("s", FieldType::Text)];
    Schema { fields, ..Schema::default() }
}

fn function(text: &str) -> Function {
    Function::parse(text, &schema()).unwrap().remove(0)
}

/// Values spread over many magnitudes, more than are counted individually.
fn floats() -> impl Strategy<Value = Vec<f64>> {
    let one =
        (any::<bool>(), -12f64..12f64).prop_map(|(negative, e)| 10f64.powf(e) * if negative { -1.0 } else { 1.0 });
    let few = prop::collection::vec(prop_oneof![Just(0.0), Just(-0.0), one.clone(), -5.0..5.0f64], 0..50);
    let many = prop::collection::vec(one, 5_000..12_000);
    let narrow = prop::collection::vec(100.0..101.0f64, 5_000..9_000);
    prop_oneof![3 => few, 1 => many, 1 => narrow]
}

fn ints() -> impl Strategy<Value = Vec<i64>> {
    let few = prop::collection::vec(-20i64..20, 0..60);
    let many = prop::collection::vec(any::<i64>(), 5_000..9_000);
    let dense = prop::collection::vec(0i64..20_000, 9_000..12_000);
    prop_oneof![2 => few, 1 => many, 1 => dense]
}

/// The summary of parts of the values, merged from the left or from the right, each decoded from its bytes.
fn in_parts<T: Copy>(
    values: &[T],
    cuts: &[prop::sample::Index],
    kind: Kind,
    field: FieldType,
    backwards: bool,
    add: impl Fn(&mut Sketch, T),
) -> Sketch {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(values.len() + 1)).collect();
    at.extend([0, values.len()]);
    at.sort_unstable();
    let mut parts: Vec<Sketch> = at
        .windows(2)
        .map(|ends| {
            let mut part = Sketch::of(kind, field);
            values[ends[0]..ends[1]].iter().for_each(|value| add(&mut part, *value));
            Sketch::decode(kind, field, &part.encode()).unwrap()
        })
        .collect();
    if backwards {
        parts.reverse();
    }
    let mut all = Sketch::of(kind, field);
    parts.iter().for_each(|part| all.merge(part));
    all
}

fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn quantiles_are_those_of_the_sorted_values_within_the_stated_error(
        values in floats(), cuts in cuts(), backwards in any::<bool>(),
    ) {
        let add = |sketch: &mut Sketch, x| if let Sketch::Quantiles(all) = sketch { all.add_float(x) };
        let whole = in_parts(&values, &[], Kind::Quantiles, FieldType::Float, false, add);
        let merged = in_parts(&values, &cuts, Kind::Quantiles, FieldType::Float, backwards, add);
        prop_assert!(whole.encode() == merged.encode(), "the split shows");
        let mut sorted = values.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let distinct = values.iter().map(|x| (x + 0.0).to_bits()).collect::<BTreeSet<_>>().len();
        for percent in ["0", "1", "25", "50", "75", "99", "99.9", "100"] {
            let (value, error) = merged.value(&function(&format!("percentile(x,{percent})")));
            prop_assert_eq!(error > 0.0, distinct > quantiles::VALUES_MAX);
            prop_assert!(error <= 0.5, "{error}");
            let parts = (percent.parse::<f64>().unwrap() * 1000.0).round() as usize;
            let rank = (values.len() * parts).div_ceil(100_000).max(1) - 1;
            match (value, sorted.get(rank)) {
                (FunctionValue::Null, None) => {}
                (FunctionValue::Float(found), Some(&expected)) => {
                    let off = (found - expected).abs();
                    prop_assert!(off <= error * expected.abs() * (1.0 + 1e-9), "{percent}: {found} is not {expected}, within {error}");
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }

    #[test]
    fn quantiles_of_integers_are_integers(values in ints(), cuts in cuts(), backwards in any::<bool>()) {
        let add = |sketch: &mut Sketch, n| if let Sketch::Quantiles(all) = sketch { all.add_int(n) };
        let whole = in_parts(&values, &[], Kind::Quantiles, FieldType::Int, false, add);
        let merged = in_parts(&values, &cuts, Kind::Quantiles, FieldType::Int, backwards, add);
        prop_assert!(whole.encode() == merged.encode(), "the split shows");
        let mut sorted = values.clone();
        sorted.sort_unstable();
        for percent in [0usize, 10, 50, 90, 100] {
            let (value, error) = merged.value(&function(&format!("percentile(n,{percent})")));
            let rank = (values.len() * percent).div_ceil(100).max(1) - 1;
            match (value, sorted.get(rank)) {
                (FunctionValue::Null, None) => {}
                (FunctionValue::Int(found), Some(&expected)) => {
                    let off = (found - i128::from(expected)).unsigned_abs() as f64;
                    let max = error * (expected as f64).abs() * (1.0 + 1e-9);
                    prop_assert!(off <= max, "{percent}: {found} is not {expected}, within {error}");
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }

    #[test]
    fn different_values_are_counted_however_they_are_split(
        values in prop_oneof![prop::collection::vec(0i64..300, 0..900), prop::collection::vec(any::<i64>(), 4_000..20_000)],
        cuts in cuts(), backwards in any::<bool>(),
    ) {
        let add = |sketch: &mut Sketch, n| if let Sketch::Distinct(all) = sketch { all.add_int(n) };
        let whole = in_parts(&values, &[], Kind::Distinct, FieldType::Int, false, add);
        let merged = in_parts(&values, &cuts, Kind::Distinct, FieldType::Int, backwards, add);
        prop_assert!(whole.encode() == merged.encode(), "the split shows");
        let expected = values.iter().collect::<BTreeSet<_>>().len();
        let (FunctionValue::Int(found), error) = merged.value(&function("distinct(n)")) else { panic!("no number") };
        prop_assert_eq!(error > 0.0, expected > distinct::VALUES_MAX);
        // Twice the stated error: among many tests one would fail at three standard errors.
        let off = (found - expected as i128).unsigned_abs() as f64;
        prop_assert!(off <= 2.0 * error * expected as f64, "{found} is not {expected}");
    }

    #[test]
    fn the_most_frequent_values_are_bounded_on_both_sides(
        many in prop_oneof![2 => Just(0usize), 1 => 17_000usize..40_000], often in prop::collection::vec((0i64..40, 1u64..4_000), 0..40),
        cuts in cuts(), backwards in any::<bool>(),
    ) {
        let mut values: Vec<i64> = often.iter().flat_map(|(n, times)| std::iter::repeat_n(*n, *times as usize % 400)).collect();
        // The others once each, in between.
        let singles: Vec<i64> = (1_000..1_000 + many as i64).collect();
        let at = values.len() / 2;
        values.splice(at..at, singles);
        let add = |sketch: &mut Sketch, n| if let Sketch::Frequent(all) = sketch { all.add_int(n) };
        let merged = in_parts(&values, &cuts, Kind::Frequent, FieldType::Int, backwards, add);
        let mut expected: BTreeMap<i64, u64> = BTreeMap::new();
        values.iter().for_each(|n| *expected.entry(*n).or_default() += 1);
        let (FunctionValue::Top(top), error) = merged.value(&function("top(n,10)")) else { panic!("no list") };
        prop_assert_eq!(error > 0.0, expected.len() > frequent::VALUES_MAX);
        let error = error as u64;
        // The guarantee of Misra and Gries for the remaining counters.
        prop_assert!(error <= values.len() as u64 / (frequent::VALUES_MAX as u64 / 2), "{error} of {}", values.len());
        for (value, count) in top.iter() {
            let ByValue::Int(n) = value else { panic!("{value:?}") };
            prop_assert!((*count..=count + error).contains(&expected[n]), "{n}: {count} is not {}", expected[n]);
        }
        // Nothing more frequent is omitted.
        let listed: BTreeSet<&ByValue> = top.iter().map(|(value, _)| value).collect();
        let last = top.last().map_or(0, |(_, count)| *count);
        for (n, count) in &expected {
            prop_assert!(listed.contains(&ByValue::Int(*n)) || (top.len() < 10 && *count <= error) || *count <= last + error, "{n}: {count}");
        }
        if error == 0 {
            let mut all: Vec<(ByValue, u64)> = expected.into_iter().map(|(n, count)| (ByValue::Int(n), count)).collect();
            all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            all.truncate(10);
            prop_assert_eq!(&top[..], &all[..]);
        }
    }

    #[test]
    fn bytes_of_others_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..200), change in any::<(prop::sample::Index, u8)>(), cut in any::<prop::sample::Index>(),
    ) {
        let field = [FieldType::Int, FieldType::Float, FieldType::Text];
        for (kind, field) in [Kind::Quantiles, Kind::Distinct, Kind::Frequent].into_iter().flat_map(|kind| field.map(|field| (kind, field))) {
            let mut own = Sketch::of(kind, field);
            match &mut own {
                Sketch::Quantiles(all) => (0..9).for_each(|n| all.add_float(f64::from(n))),
                Sketch::Distinct(all) => (0..9).for_each(|n| all.add_int(n)),
                Sketch::Frequent(all) => (0..9).for_each(|n| if field == FieldType::Text { all.add_text(&n.to_string()) } else { all.add_int(n) }),
            }
            let mut changed = own.encode();
            let (at, to) = change;
            let at = at.index(changed.len());
            changed[at] = to;
            let short = &changed[..cut.index(changed.len())];
            for bytes in [&bytes[..], &changed, short] {
                let Ok(read) = Sketch::decode(kind, field, bytes) else { continue };
                // Whatever decodes can be merged and queried.
                own.merge(&read);
                for text in ["percentile(n,50)", "percentile(x,100)", "distinct(n)", "top(n,5)"] {
                    own.value(&function(text));
                    read.value(&function(text));
                }
            }
        }
    }
}

#[test]
fn texts_are_told_apart_and_estimated_beyond_the_bound() {
    let (mut all, mut few) = (Distinct::none(), Distinct::none());
    for n in 0..200_000 {
        all.add_text(&format!("text {}", n % 100_000));
        few.add_text(&format!("text {}", n % 4096));
    }
    let (FunctionValue::Int(count), error) = all.count() else { panic!("no number") };
    assert!((count - 100_000).unsigned_abs() as f64 <= error * 100_000.0, "{count}");
    assert_eq!(few.count(), (FunctionValue::Int(4096), 0.0));
    assert!(all.bytes() <= 16 << 10);
    // Both zeros are one value.
    let mut zeros = Distinct::none();
    [0.0, -0.0].into_iter().for_each(|x| zeros.add_float(x));
    assert_eq!(zeros.count(), (FunctionValue::Int(1), 0.0));
}

#[test]
fn the_error_holds_for_numbers_too_small_for_a_full_fraction() {
    for step in [1u64, 1 << 40] {
        let (mut all, mut halves) = (Quantiles::none(false), [Quantiles::none(false), Quantiles::none(false)]);
        let mut values: Vec<f64> = (1..=6_000).map(|n| f64::from_bits(n * step)).collect();
        values.extend((1..=6_000).map(|n| -f64::from_bits(n * step)));
        values.extend((0..3_000).map(|n| f64::from(n) * 0.5));
        values.extend([0.0; 1_000]);
        for (i, x) in values.iter().enumerate() {
            all.add_float(*x);
            halves[i % 2].add_float(*x);
        }
        let [mut merged, other] = halves;
        merged.merge(&other);
        values.sort_unstable_by(f64::total_cmp);
        for percent in ["0", "10", "30", "37.6", "40", "60", "75", "90", "100"] {
            let Function::Percentile(_, percent) = function(&format!("percentile(x,{percent})")) else { panic!() };
            let (FunctionValue::Float(found), error) = all.percentile(percent) else { panic!("no number") };
            let expected = values[percent.rank(values.len() as u64) as usize - 1];
            assert!((found - expected).abs() <= error * expected.abs() * (1.0 + 1e-9), "{found} {expected} {error}");
            assert!(error <= 0.001 || expected != 0.0 && expected.abs() < f64::MIN_POSITIVE, "{expected}: {error}");
            assert_eq!(merged.percentile(percent), (FunctionValue::Float(found), error));
        }
    }
}

#[test]
fn memory_is_bounded_whatever_the_values() {
    let mut all = Quantiles::none(false);
    let mut most = 0;
    for n in 0..300_000u64 {
        // All magnitudes of floats, of both signs.
        let x = f64::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        if x.is_finite() {
            all.add_float(x);
            most = most.max(all.bytes());
        }
    }
    assert!(most <= 512 << 10, "{most}");
    let (_, error) = all.percentile(match function("percentile(x,25)") {
        Function::Percentile(_, percent) => percent,
        other => panic!("{other:?}"),
    });
    assert_eq!(error, 0.5, "a bucket for each power of two");
}
