//! `meridian token`: tokens and their rights.

use crate::args::OwnerArgs;
use crate::commands::administration::{self, GrantArgs, text};
use crate::failure::Failure;
use crate::output::{remark, say};
use crate::units;
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Create, list and revoke tokens
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian token create --role operator  the first, on the server's machine
  meridian token create --role writer --collections 'ships*' --expires 90d
  meridian token create --tenant default --role admin
  meridian token list
  meridian token revoke 8f1d0c2a9be34f55
  meridian token create --role operator --bucket file:///srv/bucket  of a cluster

The last word that `create` prints is the token: it is shown this once. From the first token on, every request needs one:
programs send `Authorization: Bearer TOKEN`, this program reads MERIDIAN_TOKEN. On a data folder no token is needed, whether
or not a server serves it: the folder's owner is an operator. So is who can write the folder of a cluster's bucket (--bucket).")]
pub struct TokenArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Create(CreateArgs),
    /// List the tokens, without their secrets
    List(OwnerArgs),
    Revoke(RevokeArgs),
}

/// Create a token; its text is the last word printed
#[derive(Args, Debug)]
struct CreateArgs {
    #[command(flatten)]
    grant: GrantArgs,
    /// How long it lasts, such as 90d or 12h [default: until it is revoked]
    #[arg(long, value_name = "DURATION")]
    expires: Option<String>,
    #[command(flatten)]
    target: OwnerArgs,
}

/// Revoke a token
#[derive(Args, Debug)]
struct RevokeArgs {
    /// Its id, as `list` shows it
    id: String,
    #[command(flatten)]
    target: OwnerArgs,
}

/// Runs the command.
pub fn run(args: &TokenArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Create(args) => create(args),
        Command::List(target) => list(target),
        Command::Revoke(args) => administration::remove("token", &args.id, "revoked", (&args.target, None)),
    }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let mut asked = args.grant.document();
    if let Some(expires) = &args.expires {
        let length = units::duration(expires).map_err(|e| Failure::Usage(format!("--expires: {e}")))?;
        asked["expires"] = json!(units::duration_iso(length));
    }
    let made = administration::create("tokens", &asked, &args.target)?;
    let until = made["expires"].as_str().map_or(String::new(), |until| format!(", until {until}"));
    let (id, given, token) = (text(&made, "id"), GrantArgs::given(&made), text(&made, "token"));
    say(&format!("token {id}: {given}{until}\nit is shown this once: {token}"));
    Ok(())
}

fn list(target: &OwnerArgs) -> Result<(), Failure> {
    let mut answer = administration::as_owner(target, None, |client| client.json(&["tokens"], &[]))?;
    let [mut tokens, mut damaged] = ["tokens", "damaged"].map(|list| match answer[list].take() {
        Value::Array(all) => all,
        _ => Vec::new(),
    });
    for token in &mut damaged {
        remark(&format!("token {} is damaged and admits nobody: {}", text(token, "id"), text(token, "detail")));
        token["role"] = json!("damaged");
    }
    tokens.append(&mut damaged);
    if tokens.is_empty() {
        say("there are no tokens: while there are no users either, the server is open to programs on its own machine");
        return Ok(());
    }
    let columns = ["id", "role", "tenant", "collections", "created", "expires"];
    administration::print(columns, &tokens, |token| {
        let mut row = columns.map(|name| text(token, name));
        if row[5].parse().is_ok_and(|expires: Timestamp| expires <= Timestamp::now()) {
            row[5].push_str(" (expired)");
        }
        row
    })
}
