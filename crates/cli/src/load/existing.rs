//! Options that shape the schema of a new collection, but have no effect on an existing one.

use super::LoadArgs;
use super::source::Source;
use crate::output::remark;
use meridian_formats::ReadOptions;
use meridian_model::{FieldType, Schema, TimeRole};

/// Reports that the options do not change the schema, if they would have produced another one.
pub fn tell(args: &LoadArgs, there: &Schema, source: &mut Source, options: &ReadOptions) {
    let given = given(args);
    if given.is_empty() || args.quiet || args.track.is_some() {
        return;
    }
    // An input that cannot be read is refused by the load itself, with its reason.
    if source.infer(options).is_ok_and(|inferred| differs(there, &inferred.schema, args.id.is_some())) {
        let name = &args.collection;
        remark(&format!(
            "note: {}: the collection {name} is there already, and {} would have made another schema: the schema stays as it \
             is. meridian drop {name} removes the collection, so that the next load makes it anew",
            source.name,
            given.join(", ")
        ));
    }
}

/// Returns the schema options given on the command line.
fn given(args: &LoadArgs) -> Vec<&'static str> {
    [
        ("--lon", args.lon.is_some()),
        ("--lat", args.lat.is_some()),
        ("--geometry", args.geometry.is_some()),
        ("--time", args.time.is_some()),
        ("--id", args.id.is_some()),
        ("--zone", args.zone.is_some()),
        ("--date-format", args.date_format.is_some()),
        ("--decimal-comma", args.decimal_comma),
        ("--epoch", args.epoch.is_some()),
        ("--null", !args.null.is_empty()),
    ]
    .into_iter()
    .filter_map(|(option, is_given)| is_given.then_some(option))
    .collect()
}

/// Returns true if an input has a place, a time or ids that the collection lacks, or a type for what is a text there.
fn differs(there: &Schema, guessed: &Schema, names_ids: bool) -> bool {
    let place = guessed.geometry.is_some() && there.geometry.is_none();
    let time = guessed.time != TimeRole::None && there.time == TimeRole::None;
    let ids = names_ids && guessed.id != there.id;
    let was_text = |name: &str| there.fields.iter().any(|field| field.name == name && field.kind == FieldType::Text);
    place || time || ids || guessed.fields.iter().any(|field| field.kind != FieldType::Text && was_text(&field.name))
}
