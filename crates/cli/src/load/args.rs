//! The options of `meridian load`, converted to options of the reader.

use crate::args::TargetArgs;
use crate::failure::Failure;
use clap::Args;
use meridian_formats::{DateFormat, Epoch, Format, OnError, ReadOptions, Unknown};
use meridian_model::Invalid;
use std::path::PathBuf;

/// Load events from files or a pipe
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian load earthquakes data/usgs-earthquakes/earthquakes.csv.zst
  meridian load ships data/us-ais-20220103/ais.csv.zst --object vessel
  meridian load storms data/atlantic-storms/storms.csv.zst --track storm_id  joins positions
  meridian load regions data/natural-earth/countries_50m.geojsonl.zst --invalid skip
  printf 'time,n\\n2026-01-31 12:00,1\\n' | meridian load sensors - --zone Europe/Paris
  meridian load countries data/natural-earth/countries_50m.geojsonl.zst --preview  writes nothing
  meridian load capitals data/natural-earth/capitals_110m.geojsonl.zst --url http://127.0.0.1:7117

A missing collection is created when the first batch of the first input is read, and shown.
Files are divided into batches, each stored completely or not at all. An interrupted load can be
repeated without duplicates (for a day). It stops at the first bad line and reports the number of
events loaded, unless --invalid is given. Compression (gzip, zstd) is detected by content.")]
pub struct LoadArgs {
    /// Collection to load into
    pub collection: String,
    /// Files, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// auto, geojson, geojsonseq, ndjson, csv, gdelt, geoparquet, arrow, flatgeobuf, geopackage, shapefile, kml, gpx,
    /// nmea or gtfs-rt
    #[arg(long, default_value = "auto")]
    pub format: String,
    /// Schema for a new collection: a JSON Schema file, or a spec such as "name:String,dtg:Date,*geom:Point"
    #[arg(long, value_name = "FILE|SPEC", help_heading = "New collections")]
    pub schema: Option<String>,
    /// Durability: local (survives kill and power loss) or ephemeral (survives nothing)
    #[arg(long, default_value = "local", help_heading = "New collections")]
    pub durability: String,
    /// Number of partitions, each with a log of its own, 1 to 256 [default: 1]
    #[arg(long, value_name = "N", help_heading = "New collections")]
    pub partitions: Option<String>,
    /// Field that identifies the object of an event (a ship, a sensor)
    #[arg(long, value_name = "FIELD", help_heading = "New collections")]
    pub object: Option<String>,
    /// Join consecutive positions of each object, identified by this field, into one line
    #[arg(long, value_name = "FIELD", conflicts_with_all = ["schema", "object"], help_heading = "New collections")]
    pub track: Option<String>,
    /// Column of the longitude [found by name: lon, lng, long, longitude, x]
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub lon: Option<String>,
    /// Column of the latitude [found by name: lat, latitude, y]
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub lat: Option<String>,
    /// Column of geometry: WKT in text, WKB in Parquet and Arrow [found by name: geometry, geom, wkt]
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub geometry: Option<String>,
    /// Column of the time [found by name: time, timestamp, date, datetime, dtg]
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub time: Option<String>,
    /// Column of the id [found by name: id]
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub id: Option<String>,
    /// Layer of a file that has several (GeoPackage, zipped Shapefile)
    #[arg(long, value_name = "NAME", help_heading = "Columns")]
    pub layer: Option<String>,
    /// Drop columns that the collection does not have, instead of refusing them
    #[arg(long, help_heading = "Columns")]
    pub ignore_unknown: bool,
    /// Zone of times without one: an IANA name such as Europe/Paris, or an offset such as +02:00
    #[arg(long, value_name = "ZONE", help_heading = "Values")]
    pub zone: Option<String>,
    /// Form of times that are not ISO 8601, in the words of strftime, such as "%d.%m.%Y %H:%M"
    #[arg(long, value_name = "PATTERN", help_heading = "Values")]
    pub date_format: Option<String>,
    /// Read 1,5 as one and a half in CSV
    #[arg(long, help_heading = "Values")]
    pub decimal_comma: bool,
    /// Unit of times written as whole numbers since 1970: s, ms or us
    #[arg(long, value_name = "UNIT", help_heading = "Values")]
    pub epoch: Option<String>,
    /// Character between CSV fields, or tab [detected from the content]
    #[arg(long, value_name = "CHARACTER", help_heading = "Values")]
    pub delimiter: Option<String>,
    /// Word that means no value in CSV, such as NA; may be repeated
    #[arg(long, value_name = "WORD", help_heading = "Values")]
    pub null: Vec<String>,
    /// How to handle invalid events: refuse the input, skip them, or repair polygons and skip the rest
    #[arg(long, default_value = "refuse", value_parser = ["refuse", "skip", "repair"], help_heading = "Invalid events")]
    pub invalid: String,
    /// File for the events that are left out, a JSON object a line: input, line (or feature, record, row), field, reason,
    /// event
    #[arg(long, value_name = "FILE", help_heading = "Invalid events")]
    pub rejects: Option<PathBuf>,
    /// Drop heights and measures, which are not stored, instead of refusing events that have them
    #[arg(long, help_heading = "Invalid events")]
    pub drop_z: bool,
    /// Drop ids if the collection makes its own, instead of refusing events that have them
    #[arg(long, help_heading = "Invalid events")]
    pub drop_ids: bool,
    /// Show the first events of each file as they would be kept, and write nothing
    #[arg(long, conflicts_with_all = ["again", "rejects", "track"])]
    pub preview: bool,
    /// Load the same events again, as new events
    #[arg(long)]
    pub again: bool,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Returns the format of the inputs; `None` to detect it.
pub fn format(args: &LoadArgs) -> Result<Option<Format>, Failure> {
    match args.format.as_str() {
        "auto" => Ok(None),
        name => Format::from_name(name).map(Some).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            Failure::Usage(format!("--format: {name:?}: expected auto, {names}"))
        }),
    }
}

/// Returns the options for reading the inputs.
pub fn read_options(args: &LoadArgs) -> Result<ReadOptions, Failure> {
    let delimiter = match args.delimiter.as_deref() {
        None => None,
        Some("tab" | "\\t" | "\t") => Some(b'\t'),
        Some(one) if one.len() == 1 => Some(one.as_bytes()[0]),
        Some(other) => {
            return Err(Failure::Usage(format!("--delimiter: {other:?}: expected one character, or tab")));
        }
    };
    let epoch = match args.epoch.as_deref() {
        None => None,
        Some("s") => Some(Epoch::Seconds),
        Some("ms") => Some(Epoch::Millis),
        Some("us") => Some(Epoch::Micros),
        Some(other) => return Err(Failure::Usage(format!("--epoch: {other:?}: expected s, ms or us"))),
    };
    let date_format = args.date_format.as_deref().map(DateFormat::new);
    let zone = args.zone.as_deref().map(meridian_model::time::zone).transpose();
    let mut options = ReadOptions {
        lon: args.lon.clone(),
        lat: args.lat.clone(),
        geometry: args.geometry.clone(),
        time: args.time.clone(),
        id: args.id.clone(),
        layer: args.layer.clone(),
        delimiter,
        nulls: args.null.clone(),
        zone: zone.map_err(|e| Failure::option("--zone", &Invalid { field: None, ..e }))?,
        date_format: date_format.transpose().map_err(|e| Failure::option("--date-format", &e))?,
        decimal_comma: args.decimal_comma,
        epoch,
        unknown: if args.ignore_unknown { Unknown::Ignore } else { Unknown::Refuse },
        on_error: OnError::First,
        ..ReadOptions::default()
    };
    apply_surplus(args, &mut options);
    Ok(options)
}

/// Applies what the command line says of events that cannot be stored unchanged.
fn apply_surplus(args: &LoadArgs, options: &mut ReadOptions) {
    let surplus = |drop: bool| if drop { Unknown::Ignore } else { Unknown::Refuse };
    options.heights = surplus(args.drop_z);
    options.ids = surplus(args.drop_ids);
    options.mend = args.invalid == "repair";
    if args.invalid != "refuse" {
        options.on_error = OnError::Skip;
    }
}
