//! `meridian create`: an empty collection.

use crate::args::TargetArgs;
use crate::collection::Place;
use crate::failure::Failure;
use crate::output::say;
use crate::schema_arg;
use crate::{config, units};
use clap::Args;
use meridian_store::Settings;

/// Make an empty collection
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian create tremors --schema \"mag:Double,dtg:Date,*geom:Point:srid=4326\"
  meridian create fleet --schema \"ship:String,dtg:Date,*geom:Point\" --retention 30d

A schema is a GeoTools SimpleFeatureType spec (String, Integer, Long, Float, Double, Boolean, Date, UUID,
List[String], Point, LineString, Polygon, Multi..., Geometry), or a JSON Schema as GET /collections/NAME/schema
shows it. `meridian load` makes a collection from a file's own columns.")]
pub struct CreateArgs {
    /// Name of the collection
    pub collection: String,
    /// A JSON Schema file, or a spec such as "name:String,dtg:Date,*geom:Point"
    #[arg(long, value_name = "FILE|SPEC")]
    pub schema: String,
    /// What its events survive: local (kill and power loss) or ephemeral (nothing)
    #[arg(long, default_value = "local")]
    pub durability: String,
    /// Age, by event time, from which events are dropped, such as 30d
    #[arg(long, value_name = "DURATION")]
    pub retention: Option<String>,
    /// Bytes of events, on disk and in memory, from which the oldest are dropped, such as 20GiB
    #[arg(long, value_name = "SIZE")]
    pub retention_bytes: Option<String>,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &CreateArgs) -> Result<(), Failure> {
    let schema = schema_arg::read(&args.schema)?;
    let durability = config::durability(&args.durability).map_err(|e| Failure::Usage(format!("--durability: {e}")))?;
    let retention = args.retention.as_deref().map(units::duration).transpose();
    let retention = retention.map_err(|e| Failure::Usage(format!("--retention: {e}")))?;
    let bytes = args.retention_bytes.as_deref().map(units::size).transpose();
    let retention_bytes = bytes.map_err(|e| Failure::Usage(format!("--retention-bytes: {e}")))?;
    if retention_bytes == Some(0) {
        return Err(Failure::Usage("--retention-bytes: 0: expected 1 byte or more".to_owned()));
    }
    let settings = Settings { durability, retention, retention_bytes };
    let mut place = Place::open(args.target.resolve(), &args.collection)?;
    if place.schema().is_some() {
        return Err(Failure::Refused(format!("the collection {} is there already", args.collection)));
    }
    place.create(&schema, &settings)?;
    say(&format!("made collection {}:\n{}", args.collection, schema_arg::describe(&schema).trim_end()));
    place.close()
}
