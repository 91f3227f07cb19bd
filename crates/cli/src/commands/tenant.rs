//! `meridian tenant`: the tenants of a server.

use crate::args::OwnerArgs;
use crate::commands::administration::{self, as_owner};
use crate::failure::Failure;
use crate::output::say;
use crate::units;
use clap::{Args, Subcommand};
use meridian_model::policy::quota::Quota;
use serde_json::{Value, json};

/// Create, list, suspend and delete tenants
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian tenant create harbour --weight 2 --quota events_per_second=5000
  meridian token create --tenant harbour --role admin  its first token
  meridian tenant set harbour --quota stored_bytes=10GiB --quota events_per_second=none
  meridian tenant list
  meridian tenant suspend harbour
  meridian tenant delete harbour  with all its data

Over a bucket, events and bytes are unknown: an owner may have more than it has flushed.

Each tenant has collections, searches and tokens of its own, which no other tenant sees. What existed before there were
tenants belongs to the tenant `default`.")]
pub struct TenantArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Create a tenant
    Create(SetArgs),
    /// List the tenants
    List(OwnerArgs),
    /// Change a tenant
    Set(SetArgs),
    /// Suspend a tenant: its callers are refused
    Suspend(NameArgs),
    /// Serve a suspended tenant again
    Resume(NameArgs),
    /// Delete a suspended tenant, with all its data
    Delete(NameArgs),
}

#[derive(Args, Debug)]
struct SetArgs {
    #[command(flatten)]
    tenant: NameArgs,
    #[command(flatten)]
    settings: SettingArgs,
}

#[derive(Args, Debug)]
struct SettingArgs {
    /// Its share of the server beside others, from 1 to 1000; a new tenant has 1
    #[arg(long, value_name = "N")]
    weight: Option<u32>,
    /// Collections that callers without a token may read: names, separated by commas; a name may end in *; `none` for
    /// none
    #[arg(long, value_name = "PATTERN")]
    anonymous: Option<String>,
    /// A limit on what it uses, such as requests_per_second=100 or stored_bytes=10GiB; `none` lifts one; may be given
    /// several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = quota)]
    quota: Vec<(Quota, Option<u64>)>,
}

/// Parses a quota of the command line.
fn quota(text: &str) -> Result<(Quota, Option<u64>), String> {
    let (name, limit) = text.split_once('=').ok_or("expected NAME=VALUE, such as requests_per_second=100")?;
    let quota: Quota = name.parse().map_err(|wrong: meridian_model::Invalid| wrong.detail)?;
    let limit = match limit {
        "none" => None,
        // By the kind of quota, not by the text: a plain number is valid for both kinds.
        _ if quota.is_of_bytes() => Some(units::size(limit)?),
        _ => Some(limit.parse().map_err(|_| format!("{limit:?}: expected a number, or none"))?),
    };
    Ok((quota, limit))
}

#[derive(Args, Debug)]
struct NameArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    target: OwnerArgs,
}

impl SettingArgs {
    fn document(&self) -> Value {
        let mut document = json!({});
        if let Some(weight) = self.weight {
            document["weight"] = json!(weight);
        }
        match self.anonymous.as_deref() {
            None => {}
            // Null removes the right; an absent member keeps it.
            Some("none") => document["anonymous"] = Value::Null,
            Some(pattern) => document["anonymous"] = json!(pattern),
        }
        for (quota, limit) in &self.quota {
            // Null removes a quota; an absent member keeps it.
            document["quotas"][quota.name()] = json!(limit);
        }
        document
    }
}

/// Runs the command.
pub fn run(args: &TenantArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Create(args) => create(args),
        Command::List(target) => list(target),
        Command::Set(args) => set(args),
        Command::Suspend(tenant) => {
            change(tenant, &json!({ "suspended": true }), "is suspended: its callers are refused")
        }
        Command::Resume(tenant) => change(tenant, &json!({ "suspended": false }), "is served again"),
        Command::Delete(tenant) => administration::remove(
            "tenant",
            &tenant.name,
            "deleted, with its tokens and its data",
            (&tenant.target, None),
        ),
    }
}

fn create(args: &SetArgs) -> Result<(), Failure> {
    let (name, mut document) = (&args.tenant.name, args.settings.document());
    document["name"] = json!(name);
    administration::create("tenants", &document, &args.tenant.target)?;
    say(&format!("tenant {name} is created; `meridian token create --tenant {name} --role admin` lets someone in"));
    Ok(())
}

fn list(target: &OwnerArgs) -> Result<(), Failure> {
    let columns = ["name", "weight", "suspended", "anonymous", "quotas", "collections", "events", "bytes"];
    administration::print(columns, &administration::list("tenants", target)?, |tenant| {
        columns.map(|name| match &tenant[name] {
            // Its owner cannot be reached, and only the owner knows these.
            Value::Null if ["collections", "events", "bytes"].contains(&name) => "unknown".to_owned(),
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Object(quotas) => {
                let each = quotas.iter().map(|(name, limit)| format!("{name}={limit}"));
                each.collect::<Vec<_>>().join(" ")
            }
            other => other.to_string(),
        })
    })
}

fn set(args: &SetArgs) -> Result<(), Failure> {
    let document = args.settings.document();
    // The server accepts an empty change, but here it is a mistake.
    if document == json!({}) {
        return Err(Failure::Usage("nothing to change: expected --weight, --anonymous or --quota".to_owned()));
    }
    change(&args.tenant, &document, "is changed")
}

fn change(tenant: &NameArgs, document: &Value, done: &str) -> Result<(), Failure> {
    let name = &tenant.name;
    as_owner(&tenant.target, None, |client| client.patch(&["tenants", name], document))?;
    say(&format!("tenant {name} {done}"));
    Ok(())
}
