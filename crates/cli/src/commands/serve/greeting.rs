//! The start message, and the refusal to start on an open address without a token.

use crate::failure::Failure;
use crate::output::say;
use crate::units;
use meridian_api::Hosts;
use std::net::SocketAddr;
use std::path::Path;

/// The command that creates the first token, without the location of the tokens.
const FIRST_TOKEN: &str = "meridian token create --role operator";

/// What a server states when it starts.
pub(super) struct StartMessage {
    /// The address of HTTP.
    pub(super) address: SocketAddr,
    /// The address of Arrow Flight.
    pub(super) flight: Option<SocketAddr>,
    /// Whether clients use TLS.
    pub(super) is_secure: bool,
    /// Whether no token exists.
    pub(super) is_open: bool,
    /// The options that name where tokens are.
    pub(super) tokens_at: String,
}

impl StartMessage {
    /// Returns an address that other machines reach, with its option.
    fn beyond(&self) -> Option<(&'static str, SocketAddr)> {
        let all = [Some(("--listen", self.address)), self.flight.map(|address| ("--flight", address))];
        all.into_iter().flatten().find(|(_, address)| !address.ip().to_canonical().is_loopback())
    }

    /// Refuses to serve everyone on an address that other machines reach.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the command that creates the first token.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Some((option, address)) = self.beyond().filter(|_| self.is_open) else { return Ok(()) };
        Err(Failure::Usage(format!(
            "{option} {address}: no token exists, so everyone who reaches this address could do anything: create one \
             first with `{FIRST_TOKEN} {}`",
            self.tokens_at
        )))
    }

    /// Prints the start message. `memory` states the budget.
    pub(super) fn say(&self, place: &str, (collections, events): (usize, u64), hosts: &Hosts, memory: &str) {
        let (address, scheme) = (self.address, if self.is_secure { "https" } else { "http" });
        let map = if cfg!(feature = "map") { format!("map {scheme}://{address}/map   ") } else { String::new() };
        say(&format!(
            "Meridian {} serves {collections} collections, {} events on {scheme}://{address} ({place})\n\
             {map}API {scheme}://{address}/   end with Ctrl-C\n\
             answers to {hosts}; other names get 421 (--host, server.hosts)\n\
             {memory}",
            env!("CARGO_PKG_VERSION"),
            units::count_text(events),
        ));
        if self.is_open {
            say(&format!(
                "no token exists: open to programs on this machine. `{FIRST_TOKEN} {}` makes the first; \
                 a proxy, or any other address, needs one",
                self.tokens_at
            ));
        }
        if let Some(address) = self.flight {
            let scheme = if self.is_secure { "grpc+tls" } else { "grpc" };
            say(&format!("Arrow Flight {scheme}://{address}"));
        }
        if !self.is_secure && self.beyond().is_some() {
            say(
                "without TLS: everyone between this server and its clients can read and change what they send, tokens included \
                 (--tls-cert, --tls-key, or a proxy that speaks TLS)",
            );
        }
    }
}

/// Returns the options that name where the tokens are. Without them, the command in a hint would create a token in
/// another folder.
pub(super) fn tokens_at(bucket: Option<&str>, folder: Option<&Path>) -> String {
    match (bucket, folder) {
        (Some(bucket), _) if bucket.starts_with("s3://") => format!("--bucket {bucket} --config FILE"),
        (Some(bucket), _) => format!("--bucket {bucket}"),
        (None, Some(folder)) => format!("--data {}", folder.display()),
        (None, None) => "--url http://127.0.0.1:PORT".to_owned(),
    }
}
