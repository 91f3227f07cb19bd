//! `meridian lab cost`: the cost of a satisfied user, over sizes.

use crate::failure::Failure;
use crate::output::say;
use clap::Args;
use meridian_lab_plan::cost::Plan;
use meridian_lab_results::atomic;
use meridian_store::seams::read_named_text;
use std::path::{Path, PathBuf};

/// Price satisfied requests over sizes, by simulation or from measured runs
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian lab cost bench/studies/search-cost
  meridian lab cost bench/studies/tier-cost --json | jq '.offers[].cheapest'

Reads cost.toml in the folder (docs/cost.md), prints the answer and leaves cost.json, cost.svg and cost.png beside it.
Ends with 1 where a promise is kept by no size.")]
pub struct CostArgs {
    /// Folder with cost.toml
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Write cost.json and the picture into this folder instead; it is created if it is missing
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the answer as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &CostArgs) -> Result<(), Failure> {
    let path = args.dir.join("cost.toml");
    let blame = |detail: String| Failure::Usage(format!("{}: {detail}", path.display()));
    let plan = Plan::read(&read(&path)?).map_err(blame)?;
    let priced = plan.model(&args.dir, read_named_text).and_then(|model| plan.price(&model)).map_err(blame)?;
    let json =
        serde_json::to_string(&priced).map_err(|e| Failure::Bad(format!("the answer cannot be written: {e}")))?;
    let out = args.out.as_ref().unwrap_or(&args.dir);
    let svg = priced.picture();
    let png = meridian_lab_results::picture::png(&svg).map_err(|e| Failure::Bad(e.to_string()))?;
    std::fs::create_dir_all(out).map_err(|e| Failure::Refused(format!("{}: {e}", out.display())))?;
    for (name, content) in [("cost.json", json.as_bytes()), ("cost.svg", svg.as_bytes()), ("cost.png", &png)] {
        let path = out.join(name);
        atomic::write(&path, content).map_err(|e| Failure::Refused(format!("{}: {e}", path.display())))?;
    }
    match args.json {
        true => say(&json),
        false => say(&format!("{}\n\n{}", priced.paragraph(), priced.table().trim_end())),
    }
    match priced.offers.iter().find(|offer| offer.cheapest.is_none()) {
        Some(offer) => Err(Failure::Bad(format!("no size keeps {:?} for {:?}", offer.promise, offer.pattern))),
        None => Ok(()),
    }
}

fn read(path: &Path) -> Result<String, Failure> {
    read_named_text(path).map_err(|e| Failure::Usage(format!("{}: it cannot be read: {e}", path.display())))
}
