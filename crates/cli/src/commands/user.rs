//! `meridian user`: people who sign in with a name and a password.

use crate::args::TargetArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{say, unwritable, with_stdout};
use crate::table::Table;
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;

/// Longest password that is read, in bytes; servers take shorter ones.
const PASSWORD_BYTES_MAX: u64 = 64 << 10;

/// Create, list, change and delete users
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian user create anna --role writer --collections 'ships*' --password-file password.txt
  meridian user passwd anna --password-file password.txt
  meridian user list
  meridian user delete anna

A user signs in at /login, with the name, or with TENANT/NAME in another tenant than the default one. Without
--password-file the password is asked for and not shown, or read from standard input: its first line. Once there is a user, every request
needs a session or a token. On a data folder no token is needed, whether or not a server serves it.")]
pub struct UserArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Create(CreateArgs),
    Passwd(PasswdArgs),
    List(ListArgs),
    Delete(DeleteArgs),
}

/// Create a user
#[derive(Args, Debug)]
struct CreateArgs {
    /// Its name: small letters, digits, - _ . + @
    name: String,
    /// Its role: reader, writer, admin or operator
    #[arg(long, value_name = "ROLE")]
    role: String,
    /// Tenant that it is for [default: default; operators belong to none]
    #[arg(long, value_name = "T")]
    tenant: Option<String>,
    /// Collections that it covers: names, separated by commas; a name may end in * [default: *]
    #[arg(long, value_name = "PATTERN")]
    collections: Option<String>,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    target: TargetArgs,
}

/// Give a user another password; its sessions end
#[derive(Args, Debug)]
struct PasswdArgs {
    #[command(flatten)]
    user: NameArgs,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    target: TargetArgs,
}

/// List the users
#[derive(Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// Delete a user; its sessions end
#[derive(Args, Debug)]
struct DeleteArgs {
    #[command(flatten)]
    user: NameArgs,
    #[command(flatten)]
    target: TargetArgs,
}

#[derive(Args, Debug)]
struct NameArgs {
    /// Its name
    name: String,
    /// Its tenant [default: default, and for operators]
    #[arg(long, value_name = "T")]
    tenant: Option<String>,
}

#[derive(Args, Debug)]
struct PasswordArgs {
    /// File with the password in its first line [default: asked for, or read from standard input]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &UserArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Create(args) => create(args),
        Command::Passwd(args) => passwd(args),
        Command::List(args) => list(args),
        Command::Delete(args) => delete(args),
    }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let mut asked = json!({ "name": args.name, "role": args.role, "password": args.password.read()? });
    if let Some(tenant) = &args.tenant {
        asked["tenant"] = json!(tenant);
    }
    if let Some(collections) = &args.collections {
        asked["collections"] = json!(collections);
    }
    let client = Client::for_owner(&args.target.resolve())?;
    // The folder is closed before an error is returned, so that its log is synced.
    let made = client.ask(&["users"], &asked);
    client.close()?;
    let made = made?;
    let text = |name: &str| made[name].as_str().unwrap_or_default();
    let tenant = made["tenant"].as_str().map_or(String::new(), |tenant| format!(" of tenant {tenant}"));
    say(&format!("user {}: {}{tenant} over {}; signs in at /login", text("login"), text("role"), text("collections")));
    Ok(())
}

fn passwd(args: &PasswdArgs) -> Result<(), Failure> {
    let password = args.password.read()?;
    let client = Client::for_owner(&args.target.resolve())?.within(args.user.tenant.as_deref())?;
    let changed = client.patch(&["users", &args.user.name], &json!({ "password": password }));
    client.close()?;
    changed?;
    say(&format!("user {} has another password", args.user.name));
    Ok(())
}

fn list(args: &ListArgs) -> Result<(), Failure> {
    let client = Client::for_owner(&args.target.resolve())?;
    let answer = client.json(&["users"], &[]);
    client.close()?;
    let answer = answer?;
    let users = answer["users"].as_array().map(Vec::as_slice).unwrap_or_default();
    if users.is_empty() {
        say("there are no users: `meridian user create` makes one");
        return Ok(());
    }
    let columns = ["name", "tenant", "role", "collections", "created", "login"];
    let mut table = Table::new(["name", "tenant", "role", "collections", "created", "signs in as"]);
    for user in users {
        let mut row = columns.map(|name| user[name].as_str().unwrap_or_default().to_owned());
        if user["disabled"] == true {
            row[5] = "may not sign in".to_owned();
        }
        table.push(row.to_vec());
    }
    with_stdout(|out| table.print(&mut { out }).map_err(|e| unwritable(&e)))
}

fn delete(args: &DeleteArgs) -> Result<(), Failure> {
    let client = Client::for_owner(&args.target.resolve())?.within(args.user.tenant.as_deref())?;
    let found = client.delete(&["users", &args.user.name]);
    client.close()?;
    let name = &args.user.name;
    match found? {
        true => say(&format!("user {name} is deleted")),
        false => return Err(Failure::Bad(format!("there is no user {name}: `meridian user list` shows them"))),
    }
    Ok(())
}

impl PasswordArgs {
    /// Reads a new password; never from the command line, which other users of the machine can read.
    fn read(&self) -> Result<String, Failure> {
        if let Some(file) = &self.password_file {
            let failed = |e| Failure::Usage(format!("--password-file: {} cannot be read: {e}", file.display()));
            return first_line(std::fs::File::open(file).map_err(failed)?).map_err(failed);
        }
        let failed = |e| Failure::Refused(format!("the password cannot be read: {e}"));
        // A pipe cannot answer a prompt.
        if !std::io::stdin().is_terminal() {
            return first_line(std::io::stdin()).map_err(failed);
        }
        let password = rpassword::prompt_password("password: ").map_err(failed)?;
        match rpassword::prompt_password("again: ").map_err(failed)? == password {
            true => Ok(password),
            false => Err(Failure::Usage("the two passwords differ".to_owned())),
        }
    }
}

fn first_line(from: impl std::io::Read) -> std::io::Result<String> {
    let mut line = String::new();
    // Bounded, since the file may be a device without an end.
    std::io::BufReader::new(from.take(PASSWORD_BYTES_MAX)).read_line(&mut line)?;
    // Other white space belongs to the password.
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_first_line_with_its_blanks() {
        for (text, expected) in [("a b \r\nc", "a b "), ("abc", "abc"), ("", ""), ("\n", "")] {
            assert_eq!(first_line(text.as_bytes()).unwrap(), expected, "{text:?}");
        }
    }
}
