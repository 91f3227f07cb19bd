//! `meridian tenant`: the tenants of a server.

use crate::args::TargetArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{say, unwritable, with_stdout};
use crate::table::Table;
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

Each tenant has collections, searches and tokens of its own, which no other tenant sees. What existed before there were
tenants belongs to the tenant `default`.")]
pub struct TenantArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Create(CreateArgs),
    List(ListArgs),
    Set(SetArgs),
    Suspend(NameArgs),
    Resume(NameArgs),
    Delete(NameArgs),
}

/// Create a tenant
#[derive(Args, Debug)]
struct CreateArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    settings: SettingArgs,
    #[command(flatten)]
    target: TargetArgs,
}

/// Change a tenant
#[derive(Args, Debug)]
struct SetArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    settings: SettingArgs,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
struct SettingArgs {
    /// Its share of the server beside others, from 1 to 1000 [default: 1]
    #[arg(long, value_name = "N")]
    weight: Option<u32>,
    /// Collections that callers without a token may read: names, separated by commas; a name may end in *; `none` for none
    #[arg(long, value_name = "PATTERN")]
    anonymous: Option<String>,
    /// A limit on what it uses, such as requests_per_second=100 or stored_bytes=10GiB; `none` lifts one; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = quota)]
    quota: Vec<(Quota, Option<u64>)>,
}

/// Reads a quota as it is given on the command line.
fn quota(text: &str) -> Result<(Quota, Option<u64>), String> {
    let (name, limit) = text.split_once('=').ok_or("expected NAME=VALUE, such as requests_per_second=100")?;
    let quota: Quota = name.parse().map_err(|wrong: meridian_model::Invalid| wrong.detail)?;
    let limit = match limit {
        "none" => None,
        _ if quota.is_of_bytes() => Some(units::size(limit)?),
        _ => Some(limit.parse().map_err(|_| format!("{limit:?}: expected a number, or none"))?),
    };
    Ok((quota, limit))
}

/// List the tenants
#[derive(Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// Suspend, resume or delete a tenant
#[derive(Args, Debug)]
struct NameArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    target: TargetArgs,
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
            document["quotas"][quota.name()] = json!(limit);
        }
        document
    }
}

/// Runs the command.
pub fn run(args: &TenantArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Create(args) => create(args),
        Command::List(args) => list(args),
        Command::Set(args) => change(&args.name, &args.settings.document(), &args.target, "is changed"),
        Command::Suspend(args) => {
            change(&args.name, &json!({ "suspended": true }), &args.target, "is suspended: its callers are refused")
        }
        Command::Resume(args) => change(&args.name, &json!({ "suspended": false }), &args.target, "is served again"),
        Command::Delete(args) => delete(args),
    }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let mut document = args.settings.document();
    document["name"] = json!(args.name);
    let client = Client::for_owner(&args.target.resolve())?;
    let made = client.ask(&["tenants"], &document);
    client.close()?;
    made?;
    say(&format!("tenant {} is created; `meridian token create --tenant {0} --role admin` lets someone in", args.name));
    Ok(())
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let client = Client::for_owner(&args.target.resolve())?;
    let answer = client.json(&["tenants"], &[]);
    client.close()?;
    let answer = answer?;
    let columns = ["name", "weight", "suspended", "anonymous", "quotas", "collections", "events", "bytes"];
    let mut table = Table::new(columns);
    for tenant in answer["tenants"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let text = |name: &str| match &tenant[name] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            Value::Object(quotas) => {
                let each = quotas.iter().map(|(name, limit)| format!("{name}={limit}"));
                each.collect::<Vec<_>>().join(" ")
            }
            other => other.to_string(),
        };
        table.push(columns.map(text).to_vec());
    }
    with_stdout(|out| table.print(&mut { out }).map_err(|e| unwritable(&e)))
}

fn change(name: &str, document: &Value, target: &TargetArgs, done: &str) -> Result<(), Failure> {
    let client = Client::for_owner(&target.resolve())?;
    let changed = client.patch(&["tenants", name], document);
    client.close()?;
    changed?;
    say(&format!("tenant {name} {done}"));
    Ok(())
}

fn delete(args: &NameArgs) -> Result<(), Failure> {
    let client = Client::for_owner(&args.target.resolve())?;
    let found = client.delete(&["tenants", &args.name]);
    client.close()?;
    match found? {
        true => say(&format!("tenant {} is deleted, with its tokens and its data", args.name)),
        false => {
            return Err(Failure::Bad(format!("there is no tenant {}: `meridian tenant list` shows them", args.name)));
        }
    }
    Ok(())
}
