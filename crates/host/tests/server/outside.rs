//! The other side of the server's own calls: a request as it arrived, and an answer to it.

use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

pub(crate) struct ReceivedRequest {
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl ReceivedRequest {
    /// One whole request; `None` when the caller hung up half-way.
    pub(crate) fn read(connection: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(connection);
        let mut received = Self {
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

    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }
}

/// Answers 200 and hangs up.
pub(crate) fn respond(mut connection: &TcpStream, response: &Value) -> Option<()> {
    let response = response.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        response.len()
    );
    connection.write_all((head + &response).as_bytes()).ok()
}
