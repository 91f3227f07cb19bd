//! Input from Arrow Flight clients: descriptor commands and tickets.

use http::Uri;
use meridian_api::fuzzed::{flight_command as flight_command_of, flight_ticket as flight_ticket_of};

/// The command of a descriptor. An accepted one is an HTTP target of a collection, without a fragment.
pub fn flight_command(bytes: &[u8]) {
    let Ok(target) = of_command(bytes) else { return };
    // One that is too long for a target is rejected later.
    let Ok(uri) = target.parse::<Uri>() else { return };
    assert!(uri.path().starts_with("/collections/") && uri.path().split('/').count() == 4, "{target}");
}

fn of_command(bytes: &[u8]) -> Result<String, String> {
    flight_command_of(bytes).inspect_err(|why| assert!(!why.is_empty()))
}

/// The JSON of a ticket with a valid signature. A parsed ticket is written back unchanged.
pub fn flight_ticket(bytes: &[u8]) {
    let Ok(written) = flight_ticket_of(bytes) else { return };
    assert_eq!(flight_ticket_of(&written).as_ref(), Ok(&written));
}
