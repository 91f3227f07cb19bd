//! The columns of GDELT event exports, 1.0 and 2.0.
//!
//! Source: "The GDELT Event Database Data Format Codebook" V1.03 and V2.0. Exports are tab-separated
//! without a header. They have 57 columns, and 58 since April 2013 (the source's address). In 2.0
//! there are 61 (a second-level district in each of three places), and times of addition are to the second.

use meridian_model::{Field, FieldType, GeometryType, IdRole, Schema, TimeRole};

/// Content of one column of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Column {
    /// The event's id.
    Id,
    /// Day or second, as `yyyyMMdd` or `yyyyMMddHHmmss`.
    Time(String),
    /// The value unchanged.
    Value(String, FieldType),
    /// Latitude of the action.
    Lat,
    /// Longitude of the action.
    Lon,
}

/// Returns the columns of an export with this many fields per row; `None` if GDELT has no such form.
pub(crate) fn columns(fields: usize) -> Option<Vec<Column>> {
    match fields {
        57 => Some(layout(false, false)),
        58 => Some(layout(false, true)),
        61 => Some(layout(true, true)),
        _ => None,
    }
}

fn layout(second: bool, source: bool) -> Vec<Column> {
    use FieldType::{Float, Int, Text};
    let mut out = vec![Column::Id, Column::Time("day".into())];
    let mut push = |name: &str, kind| out.push(Column::Value(name.to_owned(), kind));
    push("month_year", Int);
    push("year", Int);
    push("fraction_date", Float);
    for actor in ["actor1", "actor2"] {
        for part in [
            "code",
            "name",
            "country_code",
            "known_group_code",
            "ethnic_code",
            "religion1_code",
            "religion2_code",
            "type1_code",
            "type2_code",
            "type3_code",
        ] {
            push(&format!("{actor}_{part}"), Text);
        }
    }
    for name in ["is_root_event", "event_code", "event_base_code", "event_root_code", "quad_class"] {
        push(name, Text);
    }
    push("goldstein_scale", Float);
    for name in ["num_mentions", "num_sources", "num_articles"] {
        push(name, Int);
    }
    push("avg_tone", Float);
    for place in ["actor1", "actor2", "action"] {
        let mut push = |part: &str, kind| out.push(Column::Value(format!("{place}_geo_{part}"), kind));
        push("type", Int);
        push("fullname", Text);
        push("countrycode", Text);
        push("adm1code", Text);
        if second {
            push("adm2code", Text);
        }
        if place == "action" {
            out.extend([Column::Lat, Column::Lon]);
        } else {
            push("lat", Float);
            push("lon", Float);
        }
        out.push(Column::Value(format!("{place}_geo_featureid"), Text));
    }
    out.push(Column::Time("date_added".into()));
    if source {
        out.push(Column::Value("source_url".into(), Text));
    }
    out
}

/// Returns the schema of a collection of GDELT events of either version. The point is the place of the action, the time
/// is the day, and the ids are GDELT's own.
pub fn gdelt_schema() -> Schema {
    let mut schema = Schema {
        geometry: Some(GeometryType::Point),
        id: IdRole::Given,
        id_name: "event_id".into(),
        title: Some("GDELT events".into()),
        ..Schema::default()
    };
    for column in layout(true, true) {
        let (name, kind) = match column {
            Column::Time(name) => (name, FieldType::Time),
            Column::Value(name, kind) => (name, kind),
            Column::Id | Column::Lat | Column::Lon => continue,
        };
        // All other values may be missing in an export.
        let required = name == "day";
        schema.fields.push(Field { name, kind, required, title: None });
    }
    schema.time = schema.field_index("day").map_or(TimeRole::None, TimeRole::Instant);
    schema
}

/// Parses a time of an export: `yyyyMMdd` (its midnight in UTC) or `yyyyMMddHHmmss`, into microseconds since 1970.
pub(crate) fn time(text: &str) -> Option<i64> {
    let digits = text.len() == 8 || text.len() == 14;
    if !digits || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (date, clock) = text.split_at(8);
    let clock = if clock.is_empty() { "000000" } else { clock };
    let (hour, rest) = clock.split_at(2);
    let (minute, second) = rest.split_at(2);
    let whole = format!("{}-{}-{}T{hour}:{minute}:{second}Z", &date[..4], &date[4..6], &date[6..]);
    crate::instant::parse(&whole, None).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_has_its_columns() {
        for (fields, lat) in [(57, 54), (58, 54), (61, 57)] {
            let columns = columns(fields).unwrap();
            assert_eq!(columns.len(), fields);
            // The codebook counts from 1.
            assert_eq!((&columns[lat - 1], &columns[lat]), (&Column::Lat, &Column::Lon));
        }
        assert_eq!(columns(60), None);
        let schema = gdelt_schema();
        schema.validate().unwrap();
        assert_eq!(schema.time, TimeRole::Instant(0));
    }

    #[test]
    fn days_and_seconds_are_times() {
        assert_eq!(time("19700102"), Some(86_400_000_000));
        assert_eq!(time("19700101000001"), Some(1_000_000));
        for bad in ["", "1970", "19701301", "1970010a", "19700101250000"] {
            assert_eq!(time(bad), None, "{bad}");
        }
    }
}
