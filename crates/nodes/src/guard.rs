//! Protection against server-side request forgery (SSRF): which URLs and addresses may be called.
//!
//! A URL is checked as text before anything is resolved. The addresses its host resolves to are
//! checked again when connecting (see [`crate::GuardedResolver`]). Both are needed: a public name
//! may resolve to a private address, and a literal address is never resolved.

use crate::address::{Reach, reach};
use std::net::IpAddr;
use url::{Host, Url};

/// What may be called. The default suits a production host for webhooks and nodes; plain http to
/// the public internet is allowed unless `require_https`.
#[derive(Clone, Debug, Default)]
pub struct UrlGuard {
    /// Only for tests: allows loopback and private networks, and plain http even where https is
    /// required. Metadata services, link-local and `deny_hosts` stay refused.
    pub allow_private: bool,
    /// Hosts that are always refused: names, including their subdomains, or addresses.
    pub deny_hosts: Vec<String>,
    pub require_https: bool,
}

/// A target that must not be called. The reason contains no more of the URL than its host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Rejected {
    pub reason: String,
}

impl Rejected {
    fn because(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

/// Names that mean this machine or its network wherever they are resolved.
const PRIVATE_NAMES: [&str; 4] = ["localhost", "local", "internal", "cluster"];
const METADATA_NAMES: [&str; 2] = ["metadata", "metadata.google.internal"];

impl UrlGuard {
    /// All checks that need no resolution. Returns the parsed URL, in which unusual forms of
    /// addresses (`0x7f.1`, `2130706433`) are normalized.
    pub fn check_url(&self, text: &str) -> Result<Url, Rejected> {
        let url = Url::parse(text).map_err(|error| {
            // The parser's message never quotes the text, which may contain credentials.
            Rejected::because(format!("not an absolute URL: {error}"))
        })?;
        match url.scheme() {
            "https" => {}
            "http" if self.require_https && !self.allow_private => {
                return Err(Rejected::because("only https is allowed"));
            }
            "http" => {}
            _ => return Err(Rejected::because("only http and https are allowed")),
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Rejected::because("credentials in the URL are not allowed"));
        }
        match url.host() {
            Some(Host::Domain(name)) => self.check_name(name)?,
            Some(Host::Ipv4(v4)) => self.check_ip(v4.into())?,
            Some(Host::Ipv6(v6)) => self.check_ip(v6.into())?,
            None => return Err(Rejected::because("the URL has no host")),
        }
        Ok(url)
    }

    pub fn check_ip(&self, address: IpAddr) -> Result<(), Rejected> {
        let address = address.to_canonical();
        let denied = self
            .deny_hosts
            .iter()
            .filter_map(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok())
            .any(|host| host.to_canonical() == address);
        if denied {
            return Err(Rejected::because(format!("{address} is on the deny list")));
        }
        match reach(address) {
            Reach::Public => Ok(()),
            Reach::Private if self.allow_private => Ok(()),
            Reach::Private => Err(Rejected::because(format!("{address} is a private address"))),
            Reach::Never => Err(Rejected::because(format!(
                "{address} is not an address that may be called"
            ))),
        }
    }

    fn check_name(&self, name: &str) -> Result<(), Rejected> {
        // The parser has lowered the case; a trailing dot names the same host.
        let name = name.trim_end_matches('.');
        if name.is_empty() {
            return Err(Rejected::because("the URL has no host"));
        }
        let denied = self
            .deny_hosts
            .iter()
            .any(|host| is_or_is_below(name, &host.trim_end_matches('.').to_ascii_lowercase()));
        if denied {
            return Err(Rejected::because(format!("{name} is on the deny list")));
        }
        if METADATA_NAMES.contains(&name) {
            return Err(Rejected::because(format!("{name} is a metadata service")));
        }
        let private = PRIVATE_NAMES
            .iter()
            .any(|private| is_or_is_below(name, private));
        if private && !self.allow_private {
            return Err(Rejected::because(format!("{name} is a private name")));
        }
        Ok(())
    }
}

fn is_or_is_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent)
        .is_some_and(|rest| rest.is_empty() || (rest.ends_with('.') && !parent.is_empty()))
}
