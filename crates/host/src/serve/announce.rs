//! Messages of a server when it is ready.

use super::ServerContext;
use crate::config::LogFormat;
use crate::output;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;
use tandem_access::Identity;
use tandem_record::AgentId;

/// Web chats that are named when the server is ready.
const MAX_SHOWN_CHATS: usize = 5;

/// The URL of this server for browsers and clients.
pub(crate) fn base_url(opened: &ServerContext) -> String {
    match &opened.settings.public_url {
        Some(url) => url.clone(),
        None => local_url(opened.address),
    }
}

/// An unspecified address (all interfaces) is replaced by loopback.
fn local_url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// A link that signs its first visitor in, once.
pub(crate) fn login_link(opened: &ServerContext, caller: Identity) -> String {
    let code = opened.codes.mint(caller, opened.now());
    format!("{}/console/login?code={}", base_url(opened), code.expose())
}

/// The login link is printed only to stdout: logs are stored and shipped, and a link is a
/// credential.
pub(super) fn serving(opened: &ServerContext, link: Option<&str>, began: Instant) {
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(ms, "ready in {ms} ms");
    let address = local_url(opened.address);
    match opened.settings.log_format {
        LogFormat::Json => {
            tracing::info!(address, "listening on {address}");
            if let Some(link) = link {
                // A closed stdout does not stop the server.
                let _ = output::line(link);
            }
        }
        LogFormat::Human => {
            output::note(format!("listening on {address}"));
            match link {
                Some(link) => output::note(format!("console: {link} (works once)")),
                None => output::note(format!(
                    "console: {}/console (sign in with a key)",
                    base_url(opened)
                )),
            }
            for agent in web_chats(opened) {
                output::note(format!("chat: {}/chat/{agent}", base_url(opened)));
            }
        }
    }
}

/// The first agents that visitors can talk to in a browser.
fn web_chats(opened: &ServerContext) -> Vec<String> {
    let Some(conversations) = opened.runtime.conversations() else {
        return Vec::new();
    };
    let agents = conversations.agents();
    let summaries = agents.summaries().into_iter();
    let is_on_web = |id: &String| {
        let spec = agents.agent(&AgentId::new(id));
        spec.is_some_and(|spec| spec.web_chat.is_some())
    };
    let ids = summaries.map(|summary| summary.id).filter(is_on_web);
    ids.take(MAX_SHOWN_CHATS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unspecified_address_is_shown_as_loopback() {
        let url = |text: &str| local_url(text.parse().unwrap());
        assert_eq!(url("0.0.0.0:80"), "http://127.0.0.1:80");
        assert_eq!(url("[::]:80"), "http://[::1]:80");
        assert_eq!(url("10.0.0.7:80"), "http://10.0.0.7:80");
    }
}
