//! Connections of the real binary: the keys of one tenant cannot take all of them.

mod server;

use server::{KEY, Server};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

const OTHER: &str = "a-key-of-another-tenant-0123456789";

fn send(server: &Server, request: &str) -> BufReader<TcpStream> {
    let address = server.url.trim_start_matches("http://");
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(request.as_bytes()).unwrap();
    BufReader::new(connection)
}

/// The status of the next response; `None` if the connection was closed instead.
fn status(connection: &mut BufReader<TcpStream>) -> Option<u16> {
    let mut line = String::new();
    connection.read_line(&mut line).ok()?;
    line.split(' ').nth(1)?.parse().ok()
}

/// A request whose body never arrives. The host says whether it wants the body.
fn begin_body(server: &Server, key: &str) -> (BufReader<TcpStream>, Option<u16>) {
    let request = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: t\r\nauthorization: Bearer {key}\r\n\
         expect: 100-continue\r\ncontent-length: 1000\r\n\r\n"
    );
    let mut connection = send(server, &request);
    let status = status(&mut connection);
    (connection, status)
}

fn new_key(server: &Server) -> String {
    let body = r#"{"name": "more", "scopes": ["runs:create"]}"#;
    let reply = server.post("/v1/host/tandem/keys", &[], body);
    let (_, json) = reply.split_once("\r\n\r\n").unwrap();
    let made: serde_json::Value = serde_json::from_str(json).unwrap();
    made["secret"].as_str().unwrap().to_owned()
}

#[test]
fn unfinished_bodies_of_many_keys_leave_connections_to_another_tenant() {
    let server = Server::with_connections(16, OTHER);
    let keys = [KEY.to_owned(), new_key(&server), new_key(&server)];
    let mut held = Vec::new();
    for key in &keys {
        for _ in 0..8 {
            held.push(begin_body(&server, key));
        }
    }
    let count = |wanted: u16| held.iter().filter(|(_, got)| *got == Some(wanted)).count();
    // Half of the connections for the tenant; half of what is left of them for each key.
    assert_eq!((count(100), count(429)), (4 + 2 + 1, 4 + 6 + 7));
    let request =
        format!("GET /v1/runs HTTP/1.1\r\nhost: t\r\nauthorization: Bearer {OTHER}\r\n\r\n");
    let theirs: Vec<_> = (0..3)
        .map(|_| {
            let mut connection = send(&server, &request);
            (status(&mut connection), connection)
        })
        .collect();
    assert!(theirs.iter().all(|(status, _)| *status == Some(200)));
}
