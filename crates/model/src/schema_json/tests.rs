use super::*;
use crate::error::Invalid;
use crate::schema::{Field, FieldType, IdRole, Mode, TimeRole};
use crate::schema::{NAME_BYTES_MAX, TIME_UNIT_DEFAULT_US, TIME_UNIT_MIN_US};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Any schema that [`Schema::validate`] accepts, with names that exercise the writers' quoting.
pub(crate) fn schemas() -> impl Strategy<Value = Schema> {
    let name = prop_oneof![
        "[a-z]{1,8}",
        "[a-zA-Z0-9 ,:;='\"*/~.äß☃-]{1,12}",
        Just("id".to_owned()),
        Just("geometry".to_owned()),
        Just("x-ogc-role".to_owned()),
    ];
    let kind = prop_oneof![
        Just(FieldType::Text),
        Just(FieldType::Int),
        Just(FieldType::Float),
        Just(FieldType::Bool),
        Just(FieldType::Time),
        Just(FieldType::Date),
        Just(FieldType::TextList),
    ];
    let text = proptest::option::of("[a-z '\",;:=☃]{0,12}");
    let field = (name.clone(), kind, any::<bool>(), text.clone()).prop_map(|(name, kind, required, title)| Field {
        name,
        kind,
        required,
        title,
    });
    let geometry = proptest::option::of(prop_oneof![
        Just(GeometryType::Point),
        Just(GeometryType::Line),
        Just(GeometryType::Polygon),
        Just(GeometryType::MultiPoint),
        Just(GeometryType::MultiLine),
        Just(GeometryType::MultiPolygon),
        Just(GeometryType::Any),
    ]);
    let unit = prop_oneof![Just(TIME_UNIT_DEFAULT_US), TIME_UNIT_MIN_US..1_000_000_000_000_000_000i64];
    (
        proptest::collection::vec(field, 0..8),
        geometry,
        (name.clone(), name),
        (any::<bool>(), any::<bool>(), 0..3u8),
        any::<[prop::sample::Index; 3]>(),
        unit,
        (text.clone(), text),
    )
        .prop_map(|(fields, geometry, names, (given, latest, time), picks, time_unit_us, texts)| {
            let mut schema = Schema { geometry, id_name: names.1, time_unit_us, ..Schema::default() };
            if geometry.is_some() {
                schema.geometry_name = names.0;
            }
            for field in fields {
                if schema.field_index(&field.name).is_none()
                    && !(geometry.is_some() && field.name == schema.geometry_name)
                {
                    schema.fields.push(field);
                }
            }
            let of = |wanted: fn(FieldType) -> bool| -> Vec<usize> {
                (0..schema.fields.len()).filter(|&i| wanted(schema.fields[i].kind)).collect()
            };
            let times = of(FieldType::is_time);
            let objects = of(|k| matches!(k, FieldType::Text | FieldType::Int));
            schema.id = if given { IdRole::Given } else { IdRole::Made };
            schema.time = match time {
                1 if !times.is_empty() => TimeRole::Instant(*picks[0].get(&times)),
                2 if times.len() > 1 => TimeRole::Interval { start: times[1], end: times[0] },
                _ => TimeRole::None,
            };
            if let TimeRole::Instant(i) = schema.time {
                schema.fields[i].required = true;
            }
            if !objects.is_empty() && picks[2].index(2) == 1 {
                schema.object = Some(*picks[1].get(&objects));
            }
            if latest && schema.object.is_some() && schema.has_time() {
                schema.mode = Mode::Latest;
            }
            (schema.title, schema.description) = texts;
            schema
        })
        .prop_filter("valid", |s| s.validate().is_ok())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_schema_comes_back_as_written(schema in schemas()) {
        let document = to_json(&schema, "a title", "http://localhost/schema");
        let text = serde_json::to_string(&document).unwrap();
        let back = from_json(&serde_json::from_str(&text).unwrap()).unwrap();
        let title = Some(schema.title.clone().unwrap_or_else(|| "a title".to_owned()));
        prop_assert_eq!(back, Schema { title, ..schema });
    }

    #[test]
    fn queryables_name_what_a_filter_may(schema in schemas()) {
        let document = queryables(&schema, "a title", "http://localhost/queryables");
        let properties = document["properties"].as_object().unwrap();
        prop_assert!(schema.fields.iter().all(|f| properties.contains_key(&f.name)));
        prop_assert_eq!(document["additionalProperties"].as_bool(), Some(false));
    }

    #[test]
    fn no_document_makes_the_reader_panic(key in "[a-z$-]{1,12}", text in "[ -~]{0,12}", n in any::<i64>()) {
        for value in [json!(text), json!(n), json!([text]), json!({&key: text}), json!(null)] {
            let _ = from_json(&json!({ &key: value }));
            let _ = from_json(&json!({"properties": {&key: value}}));
            let _ = from_json(&json!({"properties": {"a": {"type": "string", &key: value}}, "required": value}));
        }
    }
}

/// A property with `text` after the type, in an otherwise valid schema.
fn with_property(property: Value) -> Result<Schema, Invalid> {
    from_json(&json!({"type": "object", "properties": {"a": property}}))
}

#[test]
fn a_schema_as_written_in_the_standard_is_read() {
    let schema = from_json(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "title": "Ships",
        "properties": {
            "mmsi": {"type": "integer", "x-meridian-object": true, "title": "Ship"},
            "seen": {"type": "string", "format": "date-time", "x-ogc-role": "primary-instant"},
            "place": {"format": "geometry-point", "x-ogc-role": "primary-geometry"},
            "name": {"type": ["string", "null"], "description": "not kept", "x-ogc-unit": "none"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "key": {"type": "string", "x-ogc-role": "id"}
        },
        "required": ["mmsi", "key"],
        "additionalProperties": false,
        "x-meridian-mode": "latest",
        "x-meridian-time-unit": "P1D"
    }))
    .unwrap();
    assert_eq!(schema.fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(), ["mmsi", "seen", "name", "tags"]);
    assert_eq!(schema.fields.iter().map(|f| f.required).collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!((schema.geometry, schema.geometry_name.as_str()), (Some(GeometryType::Point), "place"));
    assert_eq!((schema.id, schema.id_name.as_str()), (IdRole::Given, "key"));
    assert_eq!((schema.time, schema.object, schema.mode), (TimeRole::Instant(1), Some(0), Mode::Latest));
    assert_eq!(schema.time_unit_us, 86_400_000_000);
}

#[test]
fn the_order_may_be_given_by_sequence_numbers() {
    let schema = from_json(&json!({"properties": {
        "b": {"type": "string", "x-ogc-propertySeq": 2}, "a": {"type": "string", "x-ogc-propertySeq": 1}
    }}))
    .unwrap();
    assert_eq!(schema.field_index("a"), Some(0));
}

#[test]
fn what_cannot_be_kept_is_refused_by_path() {
    for (property, path) in [
        (json!({"type": "number", "minimum": 0}), "/properties/a/minimum"),
        (json!({"type": "string", "enum": ["x"]}), "/properties/a/enum"),
        (json!({"type": "string", "default": "x"}), "/properties/a/default"),
        (json!({"type": "string", "readOnly": true}), "/properties/a/readOnly"),
        (json!({"type": "string", "format": "time"}), "/properties/a/format"),
        (json!({"type": "object"}), "/properties/a/type"),
        (json!({"type": ["string", "integer"]}), "/properties/a/type"),
        (json!({"$ref": "#/x"}), "/properties/a/type"),
        (json!({"type": "array", "items": {"type": "integer"}}), "/properties/a/items"),
        (json!({"type": "string", "x-ogc-role": "primary"}), "/properties/a/x-ogc-role"),
        (json!({"type": "string", "x-meridian-objekt": true}), "/properties/a/x-meridian-objekt"),
        (json!({"format": "geometry-solid"}), "/properties/a/format"),
        (json!({"format": "geometry-point", "x-ogc-role": "id"}), "/properties/a/x-ogc-role"),
        (json!({"type": "integer", "x-ogc-role": "id"}), "/properties/a/type"),
        (json!(3), "/properties/a"),
    ] {
        let error = with_property(property.clone()).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(path), "{property}: {error}");
    }
    let point = json!({"format": "geometry-point"});
    let time = json!({"type": "string", "format": "date-time", "x-ogc-role": "primary-interval-start"});
    for (document, path) in [
        (json!({"properties": {"a": point, "b": point}}), "/properties/b"),
        (json!({"properties": {"a": point}, "required": ["a"]}), "/required/0"),
        (json!({"properties": {}, "required": ["a"]}), "/required/0"),
        (json!({"properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}), "/properties/a/type"),
        (json!({"properties": {"a": time}}), "/properties"),
        (json!({"properties": {}, "oneOf": []}), "/oneOf"),
        (json!({"properties": {}, "additionalProperties": true}), "/additionalProperties"),
        (json!({"properties": {}, "type": "array"}), "/type"),
        (json!({"properties": {}, "x-meridian-mode": "newest"}), "/x-meridian-mode"),
        (json!({"properties": {}, "x-meridian-mode": "latest"}), "x-meridian-mode"),
        (json!({"properties": {}, "x-meridian-time-unit": "P1M"}), "/x-meridian-time-unit"),
        (json!({"type": "object"}), "/properties"),
    ] {
        let error = from_json(&document).unwrap_err();
        assert_eq!(error.field.as_deref(), Some(path), "{document}: {error}");
    }
    assert!(from_json(&json!([])).is_err());
    let long = "a".repeat(NAME_BYTES_MAX + 1);
    assert!(from_json(&json!({"properties": {long: {"type": "string"}}})).is_err());
}

#[test]
fn every_member_of_a_document_is_read() {
    for member in MEMBERS {
        let mut document = json!({"properties": {"a": {"type": "string"}}});
        document[member] = json!(7);
        let error = from_json(&document).expect_err(member);
        assert_eq!(error.field, Some(format!("/{member}")));
    }
}

#[test]
fn lengths_of_time_are_read_and_written() {
    for (text, micros) in
        [("P7D", 604_800_000_000), ("P1W", 604_800_000_000), ("PT1H", 3_600_000_000), ("PT0.5S", 500_000)]
    {
        assert_eq!(parse_duration(text), Ok(micros));
        assert_eq!(parse_duration(&duration_text(micros)), Ok(micros));
    }
    for bad in ["", "7 days", "P1M", "P1Y", "PT0S", "-P1D", "P", "P99999999999W"] {
        assert!(parse_duration(bad).is_err(), "{bad}");
    }
}
