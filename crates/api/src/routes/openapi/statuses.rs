//! Responses of operations besides the one in the route table; errors are `default`.

/// Media types and the component that describes each.
type Media = &'static [(&'static str, &'static str)];

/// Operation, status, description of the response, and its media types.
pub const MORE: &[(&str, u16, &str, Media)] = &[
    (
        "createCollection",
        200,
        "The collection existed already with the same schema; it now has these settings.",
        &[("application/json", "Collection")],
    ),
    ("replaceFeature", 201, "The event is created; `Location` names it.", &[]),
    ("meridian.collection.vector.getTile", 204, "The tile has no events.", &[]),
    ("getPackets", 204, "The client has the last packet already.", &[]),
    ("getPackets", 101, "The packets are sent over a WebSocket.", &[]),
    ("getSavedPackets", 101, "The packets are sent over a WebSocket.", &[]),
    ("signIn", 303, "Signed in by a form; `Location` is where to go.", &[]),
    ("changePassword", 303, "Changed by a form; `Location` is the start page.", &[]),
    ("beginSignIn", 503, "The issuer does not answer.", &[("text/html", "Page")]),
    ("endSignIn", 401, "Not signed in; the page states the reason.", &[("text/html", "Page")]),
    ("endSignIn", 429, "Too many failed attempts; the page states it.", &[("text/html", "Page")]),
    ("endSignIn", 503, "The issuer does not answer.", &[("text/html", "Page")]),
    ("signOut", 303, "Signed out by a form; `Location` is the sign-in page.", &[]),
    ("getAsset", 206, "The part of the file that `Range` names.", &[("application/octet-stream", "Binary")]),
    ("getMap", 404, "The pages are not part of this build.", &[("text/html", "Page")]),
    ("getSearchPage", 404, "The pages are not part of this build.", &[("text/html", "Page")]),
];
