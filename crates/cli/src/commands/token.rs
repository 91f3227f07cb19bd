//! `meridian token`: tokens and their rights.

use crate::args::TargetArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{say, unwritable, with_stdout};
use crate::table::Table;
use crate::units;
use clap::{Args, Subcommand};
use serde_json::json;

/// Create, list and revoke tokens
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian token create --role operator  the first, on the server's machine
  meridian token create --role writer --collections 'ships*' --expires 90d
  meridian token create --tenant default --role admin
  meridian token list
  meridian token revoke 8f1d0c2a9be34f55

The last word that `create` prints is the token: it is shown this once. From the first token on, every request needs one:
programs send `Authorization: Bearer TOKEN`, this program reads MERIDIAN_TOKEN. On a data folder no token is needed, whether
or not a server serves it: the folder's owner is an operator.")]
pub struct TokenArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Create(CreateArgs),
    List(ListArgs),
    Revoke(RevokeArgs),
}

/// Create a token; its text is the last word printed
#[derive(Args, Debug)]
struct CreateArgs {
    /// Role of its holder: reader, writer, admin or operator
    #[arg(long, value_name = "ROLE")]
    role: String,
    /// Tenant that it is for [default: default; operators belong to none]
    #[arg(long, value_name = "T")]
    tenant: Option<String>,
    /// Collections that it covers: names, separated by commas; a name may end in * [default: *]
    #[arg(long, value_name = "PATTERN")]
    collections: Option<String>,
    /// How long it lasts, such as 90d or 12h [default: until it is revoked]
    #[arg(long, value_name = "DURATION")]
    expires: Option<String>,
    #[command(flatten)]
    target: TargetArgs,
}

/// List the tokens, without their secrets
#[derive(Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// Revoke a token
#[derive(Args, Debug)]
struct RevokeArgs {
    /// Its id, as `list` shows it
    id: String,
    #[command(flatten)]
    target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &TokenArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Create(args) => create(args),
        Command::List(args) => list(args),
        Command::Revoke(args) => revoke(args),
    }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let mut asked = json!({ "role": args.role });
    if let Some(tenant) = &args.tenant {
        asked["tenant"] = json!(tenant);
    }
    if let Some(collections) = &args.collections {
        asked["collections"] = json!(collections);
    }
    if let Some(expires) = &args.expires {
        let length = units::duration(expires).map_err(|e| Failure::Usage(format!("--expires: {e}")))?;
        asked["expires"] = json!(units::duration_iso(length));
    }
    let client = Client::for_owner(&args.target.resolve())?;
    let made = client.ask(&["tokens"], &asked);
    client.close()?;
    let made = made?;
    let text = |name: &str| made[name].as_str().unwrap_or_default().to_owned();
    let tenant = made["tenant"].as_str().map_or(String::new(), |tenant| format!(" of tenant {tenant}"));
    let until = made["expires"].as_str().map_or(String::new(), |until| format!(", until {until}"));
    say(&format!(
        "token {}: {}{tenant} over {}{until}\nit is shown this once: {}",
        text("id"),
        text("role"),
        text("collections"),
        text("token")
    ));
    Ok(())
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let client = Client::for_owner(&args.target.resolve())?;
    let answer = client.json(&["tokens"], &[]);
    client.close()?;
    let answer = answer?;
    let tokens = answer["tokens"].as_array().map(Vec::as_slice).unwrap_or_default();
    if tokens.is_empty() {
        say("there are no tokens: the server is open to programs on its own machine");
        return Ok(());
    }
    let columns = ["id", "role", "tenant", "collections", "created", "expires"];
    let mut table = Table::new(columns);
    for token in tokens {
        table.push(columns.map(|name| token[name].as_str().unwrap_or_default().to_owned()).to_vec());
    }
    with_stdout(|out| table.print(&mut { out }).map_err(|e| unwritable(&e)))
}

fn revoke(args: &RevokeArgs) -> Result<(), Failure> {
    let client = Client::for_owner(&args.target.resolve())?;
    let found = client.delete(&["tokens", &args.id]);
    client.close()?;
    match found? {
        true => say(&format!("token {} is revoked", args.id)),
        false => return Err(Failure::Bad(format!("there is no token {}: `meridian token list` shows them", args.id))),
    }
    Ok(())
}
