//! `meridian cluster` of a program that was built without it.

use crate::failure::Failure;
use clap::Args;

/// Start a cluster for trial on this machine, and look at one (not in this build: it needs the feature `cluster`)
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct ClusterArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _args: Vec<String>,
}

/// Reports the missing feature.
pub fn run(_: &ClusterArgs) -> Result<(), Failure> {
    Err(Failure::Usage("cluster is not in this build: build meridian with the feature `cluster`".to_owned()))
}
