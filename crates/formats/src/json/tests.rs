//! Compares the parser with serde_json.

use super::*;

use proptest::prelude::*;
use serde_json::Value;

fn tree(json: &mut Json<'_>) -> Result<Value, Invalid> {
    Ok(match json.peek() {
        Some(b'{') => {
            let mut map = serde_json::Map::new();
            json.open_object()?;
            let mut first = true;
            while let Some(key) = json.key(&mut first)? {
                let value = tree(json)?;
                map.insert(key.into_owned(), value);
            }
            Value::Object(map)
        }
        Some(b'[') => {
            let mut list = Vec::new();
            json.open_array()?;
            let mut first = true;
            while json.element(&mut first)? {
                list.push(tree(json)?);
            }
            Value::Array(list)
        }
        _ => match json.scalar()? {
            Scalar::Null => Value::Null,
            Scalar::Bool(b) => Value::Bool(b),
            Scalar::Text(t) => Value::String(t.into_owned()),
            Scalar::Number(Number::Int(n)) => n.into(),
            Scalar::Number(Number::Float(x)) => x.into(),
        },
    })
}

fn read(text: &str) -> Result<Value, Invalid> {
    let mut json = Json::new(text);
    let value = tree(&mut json)?;
    json.end()?;
    let mut skipper = Json::new(text);
    skipper.skip().expect("what is read can be skipped");
    skipper.end().expect("to the same end");
    Ok(value)
}

fn json_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|b| b.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(|x| format!("{x:e}")),
        any::<String>().prop_map(|t| serde_json::to_string(&t).unwrap()),
        "\"(\\\\u[0-9a-fA-F]{4}|\\\\[nrtbf/\"\\\\]|[a-z])*\"",
        "-?[0-9]{1,3}(\\.[0-9]{0,2})?([eE][+-]?[0-9]{0,3})?",
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(|v| format!("[ {} ]", v.join(" ,\n"))),
            prop::collection::vec((any::<String>(), inner), 0..5).prop_map(|v| {
                let members: Vec<_> =
                    v.iter().map(|(k, v)| format!("{} : {v}", serde_json::to_string(k).unwrap())).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// Compares values up to the last bits of floats, which serde_json rounds imprecisely by default.
fn close(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            let (p, q) = (x.as_f64().unwrap(), y.as_f64().unwrap());
            x == y || (p - q).abs() <= p.abs() * 16.0 * f64::EPSILON || p.abs() < 1e-300
        }
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| close(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|((k, x), (l, y))| k == l && close(x, y))
        }
        _ => a == b,
    }
}

fn same(text: &str) {
    match (read(text), serde_json::from_str::<Value>(text)) {
        (Ok(mine), Ok(theirs)) => assert!(close(&mine, &theirs), "{text}: {mine} is not {theirs}"),
        (Err(_), Err(_)) => {}
        (mine, theirs) => panic!("{text}: {mine:?} but serde_json {theirs:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn agrees_with_serde_json(text in json_text()) { same(&text); }

    #[test]
    fn agrees_with_serde_json_on_broken_text(text in json_text(), at in any::<prop::sample::Index>(), with in "[\\[\\]{}\",:0-9a-z\\\\ .-]?") {
        let places: Vec<usize> = text.char_indices().map(|(i, _)| i).collect();
        let at = places[at.index(places.len())];
        let next = at + text[at..].chars().next().map_or(0, char::len_utf8);
        same(&format!("{}{with}{}", &text[..at], &text[next..]));
    }
}

#[test]
fn mistakes_name_the_character() {
    for (text, expected) in [
        ("{\"é\":}", "a value was expected at character 6, found '}'"),
        ("[1 2]", "',' or ']' was expected at character 4"),
        ("\"abc", "closing quote was expected at character 5, where the text ends"),
        ("[NaN]", "a value was expected at character 2"),
        ("[01]", "a number was expected at character 2"),
        ("[01]\n", "a number was expected at character 2"),
        ("[\n01]", "a number was expected, found '0'"),
        ("[1e999]", "too large"),
        ("\"\\ud800x\"", "surrogates"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.detail.contains(expected), "{text}: {error}");
    }
    let deep = "[".repeat(100_000);
    assert!(read(&deep).unwrap_err().detail.contains("deeper than 64"));
}
