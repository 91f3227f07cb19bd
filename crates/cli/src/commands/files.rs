//! `meridian files`: lists the files of a collection, for DuckDB, pandas, QGIS and others to read in place.

use crate::args::OwnerArgs;
use crate::commands::client::Client;
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use serde_json::Value;

/// List a collection's GeoParquet files, one a line, for other programs to read in place
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian files earthquakes
  duckdb -c \"SELECT count(*) FROM read_parquet([$(meridian files earthquakes --quoted)])\"

All events so far are written to files first, without replaced and deleted ones: the files hold each event once. They
stay for an hour (store.files_memory), whatever is written meanwhile; list them again after that.
With --bucket, or of a gateway, they are objects in the bucket of the cluster. docs/files.md has examples.")]
pub struct FilesArgs {
    /// Collection to list
    pub collection: String,
    /// Print one line, each file in single quotes, commas between
    #[arg(long)]
    pub quoted: bool,
    #[command(flatten)]
    pub target: OwnerArgs,
}

/// Runs the command.
pub fn run(args: &FilesArgs) -> Result<(), Failure> {
    let client = Client::of_collections(&args.target.resolve())?;
    let answer = client.post(&["collections", &args.collection, "files"])?;
    let files: Vec<&str> =
        answer.get("files").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    if args.quoted {
        let quoted: Vec<String> = files.iter().map(|file| format!("'{}'", file.replace('\'', "''"))).collect();
        say(&quoted.join(", "));
    } else {
        files.iter().for_each(|file| say(file));
    }
    client.close()
}
