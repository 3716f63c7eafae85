//! The peer of the server's outbound calls: a received request, and a response to it.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

pub(crate) struct ReceivedRequest {
    path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl ReceivedRequest {
    /// One whole request; `None` when the caller disconnected before its end.
    pub(crate) fn read(connection: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(connection);
        let mut first = String::new();
        reader.read_line(&mut first).ok()?;
        let mut received = Self {
            path: first.split(' ').nth(1)?.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(": ") {
                let name = name.to_ascii_lowercase();
                received.headers.push((name, value.to_owned()));
            }
        }
        let length = received.header("content-length").parse().ok()?;
        received.body.resize(length, 0);
        reader.read_exact(&mut received.body).ok()?;
        Some(received)
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }
}

/// Responds with 200 and closes the connection.
pub(crate) fn respond(connection: &TcpStream, response: &Value) -> Option<()> {
    respond_with(
        connection,
        "application/json",
        response.to_string().as_bytes(),
    )
}

/// The same with a recording.
pub(crate) fn respond_audio(connection: &TcpStream, recording: &[u8]) -> Option<()> {
    respond_with(connection, "audio/mpeg", recording)
}

fn respond_with(mut connection: &TcpStream, content_type: &str, body: &[u8]) -> Option<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(&[head.as_bytes(), body].concat()).ok()
}
