//! E-mail, against a mail server on this machine.

use super::super::fixtures::*;
use super::*;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// What a mail server was told, and the mails it took.
#[derive(Default)]
struct Received {
    commands: Vec<String>,
    mails: Vec<String>,
}

/// Answers the recipient of every mail with this line.
async fn mail_server(recipient: &'static str) -> (u16, Arc<Mutex<Received>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let received: Arc<Mutex<Received>> = Arc::default();
    let noted = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, recipient, Arc::clone(&noted)));
        }
    });
    (port, received)
}

async fn serve(stream: TcpStream, recipient: &str, noted: Arc<Mutex<Received>>) {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    let _ = write.write_all(b"220 test\r\n").await;
    while let Ok(Some(line)) = lines.next_line().await {
        let answer = match line.split([' ', ':']).next().unwrap_or_default() {
            "EHLO" => "250-test\r\n250 AUTH PLAIN",
            "RCPT" => recipient,
            "DATA" => "354 go on",
            "AUTH" => "235 welcome",
            "QUIT" => "221 bye",
            _ => "250 ok",
        };
        noted.lock().commands.push(line.clone());
        let _ = write.write_all(format!("{answer}\r\n").as_bytes()).await;
        if line != "DATA" {
            continue;
        }
        let mut mail = String::new();
        while let Ok(Some(line)) = lines.next_line().await {
            if line == "." {
                break;
            }
            mail.push_str(&line);
            mail.push('\n');
        }
        noted.lock().mails.push(mail);
        let _ = write.write_all(b"250 taken\r\n").await;
    }
}

fn email(port: u16, more: &str) -> Desk {
    network_desk(&format!(
        "kind: 'email', host: '127.0.0.1', port: {port}, security: 'none', from: 'Desk <desk@example.com>', {more}"
    ))
}

/// Z-198 (half: a mail has the same identity at every attempt)
#[tokio::test]
async fn a_text_is_a_mail_with_the_identity_of_its_key() {
    let (port, received) = mail_server("250 ok").await;
    let desk = email(
        port,
        "subject: 'Your clinic', user: 'desk', password: { env: 'MAIL_PASSWORD' }",
    );
    let sent = send(&desk, "ana@example.com", "Hello\nAna", "k1")
        .await
        .expect("sent");
    let id = sent.id.expect("an id");
    assert!(id.ends_with("@example.com"), "{id}");
    let again = send(&desk, "ana@example.com", "Hello\nAna", "k1")
        .await
        .expect("sent");
    assert_eq!(again.id.as_ref(), Some(&id));
    let received = received.lock();
    let mail = &received.mails[0];
    for line in [
        "Subject: Your clinic",
        "From: Desk <desk@example.com>",
        "To: ana@example.com",
        "Auto-Submitted: auto-generated",
    ] {
        assert!(mail.contains(line), "{mail}");
    }
    assert!(mail.contains(&format!("Message-ID: <{id}>")), "{mail}");
    assert!(mail.contains("Hello\nAna"), "{mail}");
    assert!(
        received
            .commands
            .iter()
            .any(|line| line.starts_with("AUTH PLAIN"))
    );
}

#[tokio::test]
async fn refusals_are_final_or_not_as_the_server_says() {
    for (answer, is_transient) in [("550 no such user", false), ("451 greylisted", true)] {
        let (port, received) = mail_server(answer).await;
        let desk = email(port, "");
        let refused = send(&desk, "ana@example.com", "x", "k")
            .await
            .expect_err("refused");
        assert_eq!(refused.is_transient, is_transient, "{refused:?}");
        assert!(received.lock().mails.is_empty());
    }
    let desk = email(1, "delivery: 'at_most_once'");
    let lost = send(&desk, "ana@example.com", "x", "k")
        .await
        .expect_err("nobody");
    assert!(!lost.is_transient, "it may have been taken");
}

#[tokio::test]
async fn only_addresses_are_written_to() {
    let (port, received) = mail_server("250 ok").await;
    let desk = email(port, "");
    for to in [
        "",
        "ana",
        "ana@example.com\r\nRCPT TO:<eve@example.com>",
        "a@b.example, c@d.example",
    ] {
        let refused = send(&desk, to, "x", "k").await.expect_err("no address");
        assert!(!refused.is_transient, "{to:?}");
    }
    assert!(
        received.lock().commands.is_empty(),
        "nobody was connected to"
    );
    assert_eq!(receive(&desk, &[], "{}"), Err(TransportRefusal::Unknown));
}

#[test]
fn settings_are_checked() {
    assert_refused(&[
        ("kind: 'email', from: 'a@b.example'", "host"),
        (
            "kind: 'email', host: 'mail.example', from: 'nobody'",
            "from",
        ),
        (
            "kind: 'email', host: 'mail.example', from: 'a@b.example\\nBcc: c@d.example'",
            "from",
        ),
        (
            "kind: 'email', host: 'mail.example', from: 'a@b.example', user: 'x'",
            "password",
        ),
        (
            "kind: 'email', host: 'mail.example/x', from: 'a@b.example'",
            "host",
        ),
        (
            "kind: 'email', host: 'mail.example', from: 'a@b.example', subject: 'a\\nb'",
            "subject",
        ),
        (
            "kind: 'email', host: 'mail.example', from: 'a@b.example', security: 'ssl'",
            "ssl",
        ),
    ]);
}
