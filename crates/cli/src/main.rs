//! The `meridian` program: one small file per subcommand.
//!
//! Start reading at [`Command`]; each variant's file holds its arguments, its help and its `run`. The exit codes are
//! those of [`failure::Failure`]. 0: done. 1: it ran and the result is bad. 2: wrong usage. 3: the server or the
//! store refused, or cannot be reached.

// These panic where a reader has closed the output: `output` has what does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
#[cfg(feature = "cluster")]
mod calls;
mod certificates;
mod collection;
mod commands;
mod config;
mod control;
mod failure;
mod help;
mod http;
mod interrupt;
mod load;
mod log;
mod machine;
mod new_folder;
mod output;
mod response;
#[cfg(feature = "cluster")]
mod roles;
mod schema_arg;
mod table;
mod traces;
mod trust;
mod units;
mod upload;

use clap::{FromArgMatches, Parser, Subcommand};
use commands::{
    aggregate, audit, backup, check, cluster, completions, create, delete, describe, drop, export, files, health, lab,
    list, manual, provider, query, rename, restore, search, serve, tenant, token, user,
};
use output::remark;
use std::process::ExitCode;

/// Freed memory is returned in large pieces, and threads that parse, index and answer do not contend for the
/// allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A search server for events in space and time.
#[derive(Parser, Debug)]
#[command(
    name = "meridian",
    version,
    max_term_width = 100,
    after_help = "\
First steps:
  meridian load earthquakes data/usgs-earthquakes/earthquakes.csv.zst  creates and fills it
  meridian query earthquakes --filter \"mag > 7\"                       queries it
  meridian serve  map and API on http://127.0.0.1:7117

Each command has examples: meridian load --help"
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Serve(serve::ServeArgs),
    Create(create::CreateArgs),
    Load(load::LoadArgs),
    List(list::ListArgs),
    Describe(describe::DescribeArgs),
    Query(query::QueryArgs),
    Search(search::SearchArgs),
    Provider(provider::ProviderArgs),
    Aggregate(aggregate::AggregateArgs),
    Export(export::ExportArgs),
    Files(files::FilesArgs),
    Delete(delete::DeleteArgs),
    Rename(rename::RenameArgs),
    Drop(drop::DropArgs),
    Check(check::CheckArgs),
    Health(health::HealthArgs),
    Cluster(cluster::ClusterArgs),
    Lab(lab::LabArgs),
    Backup(backup::BackupArgs),
    Restore(restore::RestoreArgs),
    Token(token::TokenArgs),
    Tenant(tenant::TenantArgs),
    User(user::UserArgs),
    Audit(audit::AuditArgs),
    Completions(completions::CompletionsArgs),
    Manual(manual::ManualArgs),
}

fn main() -> ExitCode {
    let program = Program::from_arg_matches(&help::commands().get_matches()).unwrap_or_else(|error| error.exit());
    let outcome = match program.command {
        Command::Serve(args) => serve::run(&args),
        Command::Create(args) => create::run(&args),
        Command::Load(args) => load::run(&args),
        Command::List(args) => list::run(&args),
        Command::Describe(args) => describe::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Search(args) => search::run(&args),
        Command::Provider(args) => provider::run(&args),
        Command::Aggregate(args) => aggregate::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Files(args) => files::run(&args),
        Command::Delete(args) => delete::run(&args),
        Command::Rename(args) => rename::run(&args),
        Command::Drop(args) => drop::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Health(args) => health::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Lab(args) => lab::run(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Token(args) => token::run(&args),
        Command::Tenant(args) => tenant::run(&args),
        Command::User(args) => user::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Manual(args) => manual::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Standard output may be read by a program, which must not take the error for data.
            remark(&format!("meridian: {failure}"));
            ExitCode::from(failure.code())
        }
    }
}
