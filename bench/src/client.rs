//! A minimal HTTP/1.1 client: it shares the cores with the measured server. Supports only what the
//! measured servers send: keep-alive and `Content-Length`.

use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

pub(crate) const KEY: &str = "bench-key-0123456789abcdef0123456789";
/// Key of another tenant.
pub(crate) const NEIGHBOUR_KEY: &str = "bench-key-of-the-neighbour-0123456789";

pub(crate) struct Connection {
    stream: TcpStream,
    /// Received bytes; the last response is at its start.
    buffer: Vec<u8>,
}

pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
}

impl Reply<'_> {
    pub(crate) fn expect(&self, status: u16) -> Result<(), Failure> {
        if self.status == status {
            return Ok(());
        }
        let body = String::from_utf8_lossy(self.body);
        Err(format!("the answer was {}: {body:.300}", self.status).into())
    }
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(4096),
        })
    }

    /// One request and response on the open connection.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<Reply<'_>, Failure> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let mut searched = 0;
        let head = loop {
            if let Some(end) = find(&self.buffer[searched..], b"\r\n\r\n") {
                break searched + end + 4;
            }
            searched = self.buffer.len().saturating_sub(3);
            self.more().await?;
        };
        let (status, length) = read_head(&self.buffer[..head])?;
        while self.buffer.len() < head + length {
            self.more().await?;
        }
        Ok(Reply {
            status,
            body: &self.buffer[head..head + length],
        })
    }

    async fn more(&mut self) -> Result<(), Failure> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err("the server closed the connection".into()),
            _ => Ok(()),
        }
    }

    /// The connection, for reading a body without a length.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }
}

fn read_head(head: &[u8]) -> Result<(u16, usize), Failure> {
    let text = std::str::from_utf8(head)?;
    let status = text
        .get(9..12)
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("not an HTTP answer: {text:.60}"))?;
    let length = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse().ok());
    match (status, length) {
        (204 | 304, _) => Ok((status, 0)),
        (_, Some(length)) => Ok((status, length)),
        (_, None) => Err("the answer has no Content-Length".into()),
    }
}

pub(crate) fn find(hay: &[u8], needle: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|part| part == needle)
}

/// A complete request, so that sending it is one write.
pub(crate) fn request(method: &str, path: &str, accept: &str, body: &str) -> Vec<u8> {
    request_as(KEY, method, path, accept, body)
}

pub(crate) fn request_as(key: &str, method: &str, path: &str, accept: &str, body: &str) -> Vec<u8> {
    let credentials = format!("Authorization: Bearer {key}");
    assemble(&credentials, method, path, accept, body)
}

fn assemble(credentials: &str, method: &str, path: &str, accept: &str, body: &str) -> Vec<u8> {
    let mut text = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{credentials}\r\nAccept: {accept}\r\n"
    );
    if !body.is_empty() {
        text += &format!(
            "Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
    }
    text += "\r\n";
    text += body;
    text.into_bytes()
}

/// A request of an admin, who is known by a token beside the key.
pub(crate) fn admin_request(token: &str, method: &str, path: &str, body: &str) -> Vec<u8> {
    let credentials = format!("Authorization: Bearer {KEY}\r\nX-Admin-Token: {token}");
    assemble(&credentials, method, path, "application/json", body)
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    request("GET", path, "application/json", "")
}

pub(crate) fn create(workflow: &str) -> Vec<u8> {
    let body = format!(r#"{{"workflowId":"{workflow}","inputs":{{"order":4711}}}}"#);
    request("POST", "/v1/runs", "application/json", &body)
}

/// The value of `"name":"…"`, without parsing the rest.
pub(crate) fn text_field(body: &[u8], name: &str) -> Option<String> {
    let body = std::str::from_utf8(body).ok()?;
    let rest = body.split_once(&format!("\"{name}\":"))?.1;
    let rest = rest.trim_start().strip_prefix('"')?;
    Some(rest.split('"').next()?.to_owned())
}
