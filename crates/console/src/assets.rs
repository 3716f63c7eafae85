//! The static files of the pages, compiled into the binary.
//!
//! There is no build step: the files in `assets/` are served unchanged. A file's tag is a hash of
//! its bytes, so it changes exactly when the file does.

/// One static file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    pub content_type: &'static str,
    pub body: &'static [u8],
    /// A strong validator for the `ETag` header, quotes included.
    pub etag: String,
}

const FILES: [(&str, &str, &str); 13] = [
    (
        "console.css",
        "text/css; charset=utf-8",
        include_str!("../assets/console.css"),
    ),
    (
        "console.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/console.js"),
    ),
    (
        "inbox.css",
        "text/css; charset=utf-8",
        include_str!("../assets/inbox.css"),
    ),
    (
        "inbox.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/inbox.js"),
    ),
    (
        "history.css",
        "text/css; charset=utf-8",
        include_str!("../assets/history.css"),
    ),
    (
        "history.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/history.js"),
    ),
    (
        "desk.css",
        "text/css; charset=utf-8",
        include_str!("../assets/desk.css"),
    ),
    (
        "desk.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/desk.js"),
    ),
    (
        "compared.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/compared.js"),
    ),
    (
        "chat.css",
        "text/css; charset=utf-8",
        include_str!("../assets/chat.css"),
    ),
    (
        "chat.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/chat.js"),
    ),
    (
        "embed.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/embed.js"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_str!("../assets/icon.svg"),
    ),
];

/// Looks a file up by its name below `/console/assets/`. Only the listed names exist, so path
/// traversal is impossible.
pub fn asset(path: &str) -> Option<Asset> {
    let (_, content_type, body) = FILES.iter().find(|(name, ..)| *name == path)?;
    Some(Asset {
        content_type,
        body: body.as_bytes(),
        etag: format!("\"{:016x}\"", fingerprint(body.as_bytes())),
    })
}

/// The URL a page uses. The hash in the query lets browsers cache the file forever; a server that
/// ignores the query still serves the right bytes.
pub(crate) fn url(name: &'static str) -> String {
    url_below("/console", name)
}

/// The same for the page of a web chat, whose files are apart: a proxy may keep the console from the web.
pub(crate) fn chat_url(name: &'static str) -> String {
    url_below("/chat", name)
}

fn url_below(path: &str, name: &'static str) -> String {
    let tag = asset(name).map_or(0, |asset| fingerprint(asset.body));
    format!("{path}/assets/{name}?v={tag:016x}")
}

/// FNV-1a. It only distinguishes versions of our own files and need not be hard to forge.
const fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash
}
