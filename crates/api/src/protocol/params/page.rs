//! Parameters of a page: its size and its properties.

use super::Params;
use crate::protocol::problem::{Problem, Result};
use meridian_model::Schema;

/// Default number of events on a page.
pub const LIMIT_DEFAULT: usize = 10;
/// Max events on a page with links. A higher limit is reduced to it, and the page links to the next.
pub const LIMIT_MAX: usize = 10_000;
/// Max limit of a streamed response: more than any collection holds.
pub const LIMIT_STREAM_MAX: usize = 1 << 48;

/// Takes `properties`: field names of the schema, without repeats.
pub fn take_properties(params: &mut Params, schema: &Schema) -> Result<Option<Vec<String>>> {
    let Some(text) = params.take("properties") else { return Ok(None) };
    let mut names: Vec<String> = Vec::new();
    for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        if schema.field_index(name).is_none() && name != schema.geometry_name && name != schema.id_name && name != "id"
        {
            return Err(Problem::parameter(
                "properties",
                format!("{name:?} is not a property of this collection: it has {}", field_names(schema)),
            ));
        }
        if !names.iter().any(|n| n == name) {
            names.push(name.to_owned());
        }
    }
    Ok(Some(names))
}

/// Returns the field names, for error messages.
pub fn field_names(schema: &Schema) -> String {
    match schema.fields.len() {
        0 => "none".to_owned(),
        _ => schema.fields.iter().map(|f| f.name.as_str()).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::{Field, FieldType};

    fn schema() -> Schema {
        let field = |name: &str| Field { name: name.to_owned(), kind: FieldType::Int, required: false, title: None };
        Schema { fields: vec![field("a"), field("b")], ..Schema::default() }
    }

    #[test]
    fn properties_are_checked_and_not_repeated() {
        let mut params = Params::parse(Some("properties=b,a,b")).unwrap();
        assert_eq!(take_properties(&mut params, &schema()).unwrap().unwrap(), ["b", "a"]);
        assert!(take_properties(&mut Params::parse(Some("properties=x")).unwrap(), &schema()).is_err());
    }
}
