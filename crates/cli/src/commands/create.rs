//! `meridian create`: creates an empty collection, or changes the settings of an existing one.

use crate::args::{Target, TargetArgs, folder_exists};
use crate::collection::CollectionTarget;
use crate::failure::Failure;
use crate::output::say;
use crate::schema_arg;
use crate::{config, units};
use clap::Args;
use meridian_model::schema_json;
use meridian_store::{PARTITIONS_MAX, Settings, SettingsChange};

/// Create an empty collection, or change the settings of an existing one
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian create tremors --schema \"mag:Double,dtg:Date,*geom:Point:srid=4326\"
  meridian create fleet --schema \"ship:String,dtg:Date,*geom:Point\" --retention 30d
  meridian create fleet --retention 7d --yes  removes older events

A schema is a GeoTools SimpleFeatureType spec (String, Integer, Long, Float, Double, Boolean, Date, LocalDate,
UUID, List[String], Point, LineString, Polygon, Multi..., Geometry), or a JSON Schema as returned by
GET /collections/NAME/schema. `meridian load` creates a collection from a file's columns.

For an existing collection, the named settings of its retention change and the others stay. A retention
that removes events is refused with their number, unless --yes is given. A collection that was never
written to takes another schema.")]
pub struct CreateArgs {
    /// Name of the collection
    pub collection: String,
    /// A JSON Schema file, or a spec such as "name:String,dtg:Date,*geom:Point"; a new collection needs one
    #[arg(long, value_name = "FILE|SPEC")]
    pub schema: Option<String>,
    /// Durability: local (survives kill and power loss) or ephemeral (survives nothing); cannot be changed [default:
    /// local]
    #[arg(long)]
    pub durability: Option<String>,
    /// Age, by event time, from which events are dropped, such as 30d; none keeps them indefinitely
    #[arg(long, value_name = "DURATION")]
    pub retention: Option<String>,
    /// Bytes of events, on disk and in memory, from which the oldest are dropped, such as 20GiB; none has no limit
    #[arg(long, value_name = "SIZE")]
    pub retention_bytes: Option<String>,
    /// Number of partitions of a new collection, each with a log of its own, 1 to 256; cannot be changed [default: 1]
    #[arg(long, value_name = "N")]
    pub partitions: Option<String>,
    /// Change the retention of an existing collection, however many events this removes
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &CreateArgs) -> Result<(), Failure> {
    let schema = args.schema.as_deref().map(schema_arg::read).transpose()?;
    let named = named(args)?;
    let name = &args.collection;
    let target = args.target.resolve();
    if let (Target::Folder(folder), None) = (&target, &schema) {
        // A folder is created only for a new collection, which needs a schema.
        folder_exists(folder, ", or a new collection's schema with --schema")?;
    }
    let mut place = CollectionTarget::open(target, name)?;
    match (place.schema(), schema) {
        (None, None) => {
            let missing = "expected the schema of a new collection, a file or a spec";
            return Err(Failure::Usage(format!("--schema: there is no collection {name}: {missing}")));
        }
        (None, Some(schema)) => {
            place.create(&schema, &named.of(&Settings::default()))?;
            say(&format!("made collection {name}:\n{}", schema_arg::describe(&schema).trim_end()));
        }
        // Fields are added only by PATCH. A schema is compared, and replaced as a whole if there are no events yet.
        (Some(there), Some(schema)) if !schema_json::same(&there, &schema, name) => {
            place.retype(&schema, &named)?;
            let shown = schema_arg::describe(&schema);
            say(&format!("the collection {name} had no events, and has this schema now:\n{}", shown.trim_end()));
        }
        (Some(_), _) if named == SettingsChange::default() => {
            return Err(Failure::Refused(format!("the collection {name} is there already")));
        }
        (Some(_), _) => {
            place.change(&named, args.yes)?;
            say(&format!("the collection {name} is there already, and has these settings"));
        }
    }
    place.close()
}

/// Returns the settings named on the command line.
fn named(args: &CreateArgs) -> Result<SettingsChange, Failure> {
    let option = |name: &'static str| move |e: String| Failure::Usage(format!("{name}: {e}"));
    let durability = args.durability.as_deref().map(config::durability).transpose().map_err(option("--durability"))?;
    let retention = args.retention.as_deref().map(|text| or_none(text, units::duration)).transpose();
    let bytes = args.retention_bytes.as_deref().map(|text| or_none(text, units::size)).transpose();
    let retention_bytes = bytes.map_err(option("--retention-bytes"))?;
    // It would remove everything at once, which is never intended.
    if retention_bytes == Some(Some(0)) {
        return Err(Failure::Usage("--retention-bytes: 0: expected 1 byte or more, or none".to_owned()));
    }
    let partitions = args.partitions.as_deref().map(partitions).transpose().map_err(option("--partitions"))?;
    let retention = retention.map_err(option("--retention"))?;
    Ok(SettingsChange { durability, retention, retention_bytes, partitions })
}

/// Reads a number of partitions.
pub fn partitions(text: &str) -> Result<u16, String> {
    let number = text.parse().ok().filter(|n| (1..=PARTITIONS_MAX).contains(n));
    number.ok_or_else(|| format!("{text:?}: expected a whole number from 1 to {PARTITIONS_MAX}"))
}

/// Parses a value, or the word for none.
fn or_none<T>(text: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if text == "none" { Ok(None) } else { read(text).map(Some) }
}
