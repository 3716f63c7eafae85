//! Connections of the real binary: the keys of one tenant cannot take all of them, and a WebSocket keeps its own.

mod server;

use server::{KEY, Server};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
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

/// Reads one frame of a server that masks nothing: its opcode and its content.
fn frame(connection: &mut BufReader<TcpStream>) -> (u8, Vec<u8>) {
    let mut head = [0; 2];
    connection.read_exact(&mut head).unwrap();
    let mut size = usize::from(head[1]);
    if size == 126 {
        let mut long = [0; 2];
        connection.read_exact(&mut long).unwrap();
        size = usize::from(u16::from_be_bytes(long));
    }
    let mut content = vec![0; size];
    connection.read_exact(&mut content).unwrap();
    (head[0] & 0x0F, content)
}

#[test]
fn web_chat_keeps_its_connection_and_is_told_when_the_host_stops() {
    let agent = "import { createAgent } from 'tandem';
        export default createAgent({ prompt: 'You are the desk.', transports: { web: {} } });";
    let mut server = Server::with_agent_and_connections("desk", agent, 4);
    let upgrade = "GET /v1/host/tandem/agents/desk/ui HTTP/1.1\r\nhost: t\r\nupgrade: websocket\r\n\
        connection: upgrade\r\nsec-websocket-version: 13\r\n\
        sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let mut visitor = send(&server, upgrade);
    assert_eq!(status(&mut visitor), Some(101));
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        visitor.read_line(&mut line).unwrap();
    }
    // Waiting connections make room for new ones; the WebSocket does not.
    let health = "GET /healthz HTTP/1.1\r\nhost: t\r\n\r\n";
    let mut others: Vec<_> = (0..8).map(|_| send(&server, health)).collect();
    assert_eq!(others.last_mut().and_then(status), Some(200));
    let hello = br#"{"type":"CONNECT"}"#;
    let mut sent = vec![0x81, 0x80 | u8::try_from(hello.len()).unwrap(), 0, 0, 0, 0];
    sent.extend(hello);
    visitor.get_mut().write_all(&sent).unwrap();
    let (opcode, content) = frame(&mut visitor);
    assert_eq!(opcode, 1);
    assert!(String::from_utf8(content).unwrap().contains("CONNECTED"));
    assert_eq!(server.terminate(), 0);
    let (opcode, content) = frame(&mut visitor);
    assert_eq!((opcode, &content[..2]), (8, &1001_u16.to_be_bytes()[..]));
}
