//! The index against a naive matcher that tests every question on every event, as a search tests results.

use crate::index::{Index, WordFrequencies};
use geo_types::{Coord, Geometry, LineString, Point};
use meridian_federation::Question;
use meridian_federation::SearchResult;
use meridian_federation::Settings;
use meridian_federation::classification::classify;
use meridian_federation::event::Events;
use meridian_federation::matching::matches;
use meridian_federation::words::NormalizedText;
use meridian_formats::FeatureWriter;
use meridian_model::builder::Value as Field;
use meridian_model::{Batch, BatchBuilder, Interval, Schema, Seq, schema_spec};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

const SPEC: &str =
    "title:String,text:String,author:String,language:String,images:List[String],at:Date,*geom:Geometry:srid=4326";

/// An event of the test.
#[derive(Debug, Clone)]
struct Sample {
    title: Option<String>,
    text: Option<String>,
    author: Option<String>,
    language: Option<String>,
    image: bool,
    day: i64,
    place: Option<Geometry<f64>>,
}

const DAY: i64 = 86_400_000_000;

fn batch(schema: &Arc<Schema>, events: &[Sample]) -> Batch {
    let mut builder = BatchBuilder::new(schema.clone());
    for event in events {
        for (field, text) in [&event.title, &event.text, &event.author, &event.language].into_iter().enumerate() {
            if let Some(text) = text {
                builder.set(field, Field::Text(text.clone())).unwrap();
            }
        }
        if event.image {
            builder.set(4, Field::TextList(vec!["https://example.org/a.jpg".to_owned()])).unwrap();
        }
        builder.set(5, Field::Time(event.day * DAY)).unwrap();
        if let Some(place) = &event.place {
            builder.set_geometry(place).unwrap();
        }
        builder.end_event().unwrap();
    }
    builder.finish().unwrap()
}

fn naive(question: &Question, event: &Sample) -> bool {
    let mut found = SearchResult {
        title: event.title.clone(),
        text: event.text.clone(),
        author: event.author.clone(),
        language: event.language.clone(),
        images: event.image.then(|| "https://example.org/a.jpg".to_owned()).into_iter().collect(),
        time: Some(Interval::at(event.day * DAY)),
        shape: event.place.clone(),
        ..SearchResult::default()
    };
    classify(&mut found, question);
    let texts = [&event.title, &event.text, &event.author, &event.language];
    let texts = NormalizedText::of(texts.into_iter().flatten().map(String::as_str));
    question.keywords.as_ref().is_none_or(|words| words.matches(&texts))
        && question.language.as_ref().is_none_or(|sought| found.language.as_ref() == Some(sought))
        && matches(&found, question, &["keywords".to_owned()])
}

fn text() -> impl Strategy<Value = Option<String>> {
    let word = prop_oneof![Just("flood"), Just("fire"), Just("new"), Just("york"), Just("rain"), Just("東京")];
    proptest::option::of(proptest::collection::vec(word, 0..5).prop_map(|words| words.join(" ")))
}

fn author() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(prop_oneof![Just("Ann"), Just("@bob"), Just("cleo")].prop_map(str::to_owned))
}

/// Positions all over the globe, many of them near the antimeridian, the poles and one town.
fn position() -> impl Strategy<Value = (f64, f64)> {
    let edge = prop_oneof![Just(-180.0), Just(180.0), 179.0..180.0_f64, -180.0..-179.0_f64];
    prop_oneof![
        (-180.0..180.0_f64, -90.0..90.0_f64),
        (edge, -20.0..20.0_f64),
        (-180.0..180.0_f64, 89.0..90.0_f64),
        (4.8..4.9_f64, 45.7..45.8_f64)
    ]
}

fn place() -> impl Strategy<Value = Option<Geometry<f64>>> {
    let point = position().prop_map(|(x, y)| Geometry::Point(Point::new(x, y)));
    let line = (position(), position())
        .prop_map(|(a, b)| Geometry::LineString(LineString(vec![Coord { x: a.0, y: a.1 }, Coord { x: b.0, y: b.1 }])));
    proptest::option::weighted(0.9, prop_oneof![4 => point, 1 => line])
}

fn sample() -> impl Strategy<Value = Sample> {
    let language = proptest::option::of(prop_oneof![Just("en".to_owned()), Just("fr".to_owned())]);
    (text(), text(), author(), language, any::<bool>(), 0..10_i64, place()).prop_map(
        |(title, text, author, language, image, day, place)| Sample {
            title,
            text,
            author,
            language,
            image,
            day,
            place,
        },
    )
}

fn area() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let radius = prop_oneof![1.0..1e4_f64, 1e4..3e6_f64, Just(2e7)];
    let near =
        (position(), radius).prop_map(|((x, y), metres)| vec![("near", json!([x, y])), ("radius", json!(metres))]);
    let bbox =
        (position(), position()).prop_map(|(a, b)| vec![("bbox", json!([a.0, a.1.min(b.1), b.0, a.1.max(b.1)]))]);
    let triangle = (position(), 0.01..20.0_f64).prop_map(|((x, y), size)| {
        let at = |dx: f64, dy: f64| json!([(x + dx).clamp(-180.0, 180.0), (y + dy).clamp(-90.0, 90.0)]);
        let ring = json!([at(0.0, 0.0), at(size, 0.0), at(0.0, size), at(0.0, 0.0)]);
        vec![("polygon", json!({"type": "Polygon", "coordinates": [ring]}))]
    });
    prop_oneof![2 => Just(Vec::new()), 2 => near, 2 => bbox, 1 => triangle]
}

/// Questions of every kind; invalid ones are left out.
fn question() -> impl Strategy<Value = Option<Arc<Question>>> {
    let keywords =
        "(-|NOT )?(flood|fire|rain|\"new york\"|york|東京)( (OR |AND |-)?(flood|fire|\"new york\"|new|ann|京)){0,3}";
    let days = prop_oneof![3 => Just(None), 1 => (0..10_i64, 0..5_i64).prop_map(Some)];
    let media = prop_oneof![4 => Just(None), 1 => Just(Some("images"))];
    let language = prop_oneof![4 => Just(None), 1 => Just(Some("fr"))];
    (proptest::option::of(keywords), area(), proptest::option::weighted(0.3, author()), days, media, language).prop_map(
        |(keywords, area, author, days, media, language)| {
            let mut asked = json!({});
            for (name, value) in area {
                asked[name] = value;
            }
            for (name, value) in [("keywords", keywords), ("author", author.flatten())] {
                if let Some(value) = value {
                    asked[name] = value.into();
                }
            }
            for (name, value) in [("media", media), ("language", language)] {
                if let Some(value) = value {
                    asked[name] = value.into();
                }
            }
            if let Some((start, days)) = days {
                asked["start"] = format!("1970-01-{:02}", start + 1).into();
                asked["end"] = format!("1970-01-{:02}", start + days + 1).into();
            }
            Question::read(&asked, &Settings::default()).ok().map(Arc::new)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// The same questions match, each once, while questions change and words become common or rare.
    #[test]
    fn the_index_finds_what_looking_at_every_question_finds(
        questions in proptest::collection::vec(question(), 1..60),
        events in proptest::collection::vec(sample(), 1..40),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), question()), 40),
    ) {
        let schema = Arc::new(schema_spec::parse(SPEC).unwrap());
        let batch = batch(&schema, &events);
        let seqs: Vec<Seq> = (0..events.len()).map(|row| Seq::new(1, row)).collect();
        let writer = FeatureWriter::new(&schema, None).unwrap();
        let rows = Events::of("c", &batch, &writer, &seqs);
        let mut index = Index::new(Arc::<WordFrequencies>::default());
        // A question's index in this list identifies it.
        let mut match_index: Vec<Option<(u32, Arc<Question>)>> = Vec::new();
        for question in questions.into_iter().flatten() {
            match_index.push(Some((index.insert(question.clone(), match_index.len()), question)));
        }
        for (row, (event, (which, new))) in events.iter().zip(changes).enumerate() {
            let mut found = Vec::new();
            index.answered(&rows.event(row), |name| found.push(*name));
            found.sort_unstable();
            let expected: Vec<usize> = match_index
                .iter()
                .enumerate()
                .filter_map(|(name, one)| one.as_ref().filter(|(_, question)| naive(question, event)).map(|_| name))
                .collect();
            prop_assert_eq!(&found, &expected, "{:?}", event);
            // One is removed and another added under a new number.
            if !match_index.is_empty() {
                let name = which.index(match_index.len());
                if let Some((number, _)) = match_index[name].take() {
                    prop_assert_eq!(index.remove(number), Some(name));
                    prop_assert_eq!(index.remove(number), None);
                }
            }
            if let Some(new) = new {
                match_index.push(Some((index.insert(new.clone(), match_index.len()), new)));
            }
        }
        for (number, _) in match_index.into_iter().flatten() {
            index.remove(number);
        }
        prop_assert!(index.is_empty());
    }
}
