//! Listen addresses.

use crate::failure::Failure;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// `127.0.0.1:7717`, `[::1]:7717`, `localhost:7717`.
pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, Failure> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let wrong = |why: &str| {
        Failure::new(
            format!("{text:?} is not an address to listen on: {why}"),
            "Write it as HOST:PORT, for example --listen 127.0.0.1:7717.",
        )
    };
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(wrong("the port is missing"));
    };
    if host.is_empty() {
        return Err(wrong("the host is missing"));
    }
    if port.parse::<u16>().is_err() {
        return Err(wrong("the port is not a number from 0 to 65535"));
    }
    let mut found = text
        .to_socket_addrs()
        .map_err(|_| wrong("the host is not known"))?;
    found.next().ok_or_else(|| wrong("the host has no address"))
}
