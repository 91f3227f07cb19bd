use super::*;
use crate::schema::{FieldType, GeometryType, TimeRole};
use crate::schema_json::tests::schemas;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_schema_comes_back_as_written(schema in schemas()) {
        // An empty spec has no attributes: a collection without fields has no spec.
        prop_assume!(schema.geometry.is_some() || !schema.fields.is_empty());
        let spec = to_spec(&schema);
        match parse(&spec) {
            Ok(back) => prop_assert_eq!(back, schema),
            Err(e) => prop_assert!(false, "{}: {}", spec, e),
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-z:,;=*'\"\\[\\] A-Z]{0,40}") {
        let _ = parse(&text);
    }
}

#[test]
fn a_spec_as_geomesa_users_write_it_is_read() {
    let schema = parse("name:String:index=true,age:Integer,dtg:Date:default=true,*geom:Point:srid=4326").unwrap();
    assert_eq!(
        schema.fields.iter().map(|f| f.kind).collect::<Vec<_>>(),
        [FieldType::Text, FieldType::Int, FieldType::Time]
    );
    assert_eq!((schema.geometry, schema.geometry_name.as_str()), (Some(GeometryType::Point), "geom"));
    assert_eq!(schema.time, TimeRole::Instant(2));
    assert!(schema.fields[2].required);

    let schema = parse(
        "Who:String, What:java.lang.Long, When:Date, other:Timestamp, tags:List[String], *Where:org.locationtech.jts.geom.MultiPolygon ; geomesa.index.dtg='other',geomesa.table.sharing='false',geomesa.z3.interval=day",
    )
    .unwrap();
    assert_eq!(schema.time, TimeRole::Instant(3));
    assert_eq!(schema.geometry, Some(GeometryType::MultiPolygon));
    assert_eq!(schema.time_unit_us, 86_400_000_000);
    assert_eq!(parse("a,b:UUID,c:Date;geomesa.ignore.dtg='true'").unwrap().time, TimeRole::None);
}

#[test]
fn mistakes_are_named_by_position() {
    for (spec, position, word) in [
        ("", 1, "name"),
        ("name:Strin", 6, "Strin"),
        ("name:String,dtg:Date,*geom:Point:srid=3857", 39, "4326"),
        ("name:String:colour=red", 13, "colour"),
        ("a:String,,b:String", 10, "name"),
        ("a:String,a:Long", 10, "second"),
        ("*a:String", 2, "star"),
        ("a:Point,b:Point", 9, "second"),
        ("a:GeometryCollection", 3, "GeometryCollection"),
        ("a:String;geomesa.index.dtg='a'", 28, "not a Date"),
        ("a:String;colour='red'", 10, "colour"),
        ("a:'String", 3, "not closed"),
        ("a:Point:nillable=false", 9, "required"),
        ("ä:Date:default=perhaps", 16, "true or false"),
        ("a:String;meridian.time.unit='P1M'", 29, "ISO 8601"),
    ] {
        let error = parse(spec).unwrap_err();
        assert!(error.detail.contains(&format!("at character {position}:")), "{spec}: {error}");
        assert!(error.detail.contains(word), "{spec}: {error}");
    }
    assert!(parse("a:Date,b:Date;meridian.interval.start='a'").is_err());
}
