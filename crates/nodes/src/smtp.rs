//! Mail over SMTP: one connection for each mail, to an address that the guard has checked.
//!
//! The server's name is resolved once, by [`GuardedResolver`]; the connection goes to the checked address, and TLS
//! verifies the name. Without TLS only this machine is spoken to, which the guard allows in tests. What is sent is
//! parsed into addresses and headers first: a line break in one of them cannot begin another header.

use crate::client::{GuardedResolver, LookupError};
use crate::guard::UrlGuard;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How a connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpSecurity {
    /// TLS from the first byte.
    Tls,
    /// TLS after a greeting; nothing is said without it.
    StartTls,
    /// To this machine only.
    None,
}

#[derive(Clone)]
pub struct SmtpServer {
    pub host: String,
    pub port: u16,
    pub security: SmtpSecurity,
    /// The user and the password.
    pub credentials: Option<(String, String)>,
    /// For one mail, from the resolution of the name to the last answer.
    pub timeout_ms: u64,
}

/// A mail in plain text.
#[derive(Clone, Copy, Debug)]
pub struct Mail<'a> {
    pub from: &'a str,
    pub to: &'a str,
    pub subject: &'a str,
    pub text: &'a str,
    /// Its identity without brackets: the same at every attempt.
    pub message_id: &'a str,
}

/// Why a mail was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmtpFailure {
    pub message: String,
    /// Whether another attempt may succeed.
    pub is_transient: bool,
    /// Whether the server said that it did not take the mail.
    pub is_answered: bool,
}

impl SmtpFailure {
    fn refused(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_transient: false,
            is_answered: true,
        }
    }

    fn unknown(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_transient: true,
            is_answered: false,
        }
    }
}

pub struct SmtpCaller {
    guard: Arc<UrlGuard>,
    server: SmtpServer,
    tls: Tls,
}

impl SmtpCaller {
    pub fn new(guard: Arc<UrlGuard>, server: SmtpServer) -> Result<Self, String> {
        let is_of_host =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        if !server.host.chars().all(is_of_host) {
            return Err(format!("{:?} is no name of a server", server.host));
        }
        // The guard knows names by their addresses on the web.
        let name = format!("https://{}/", server.host);
        guard.check_url(&name).map_err(|rejected| rejected.reason)?;
        let parameters = || TlsParameters::new(server.host.clone()).map_err(|e| e.to_string());
        let tls = match server.security {
            SmtpSecurity::Tls => Tls::Wrapper(parameters()?),
            SmtpSecurity::StartTls => Tls::Required(parameters()?),
            SmtpSecurity::None => Tls::None,
        };
        Ok(Self { guard, server, tls })
    }

    /// Attempts it once.
    pub async fn send(&self, mail: &Mail<'_>) -> Result<(), SmtpFailure> {
        let message = compose(mail)?;
        let limit = Duration::from_millis(self.server.timeout_ms);
        let attempt = tokio::time::timeout(limit, self.attempt(message));
        match attempt.await {
            Ok(sent) => sent,
            Err(_) => {
                let limit = self.server.timeout_ms;
                let message = format!("the mail server did not answer within {limit} ms");
                Err(SmtpFailure::unknown(message))
            }
        }
    }

    async fn attempt(&self, message: Message) -> Result<(), SmtpFailure> {
        let address = self.address().await?;
        let mut builder =
            AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(address.to_string())
                .port(self.server.port)
                .tls(self.tls.clone())
                .timeout(Some(Duration::from_millis(self.server.timeout_ms)))
                // Not the name of this machine.
                .hello_name(ClientId::Domain("localhost".to_owned()));
        if let Some((user, password)) = &self.server.credentials {
            builder = builder.credentials(Credentials::new(user.clone(), password.clone()));
        }
        let sent = builder.build().send(message).await;
        sent.map(drop).map_err(|error| {
            let answered = error.status();
            let message = match answered {
                // The text of an answer may repeat what was sent.
                Some(code) => format!("the mail server answered {code}"),
                None if error.is_tls() => "no TLS with the mail server".to_owned(),
                None if error.is_client() => "the mail server cannot take the mail".to_owned(),
                None => "the connection to the mail server failed".to_owned(),
            };
            SmtpFailure {
                message,
                is_transient: !error.is_permanent() && !error.is_client(),
                is_answered: answered.is_some(),
            }
        })
    }

    async fn address(&self) -> Result<IpAddr, SmtpFailure> {
        let resolver = GuardedResolver::new(Arc::clone(&self.guard));
        let found = resolver.lookup(&self.server.host).await;
        let found = found.map_err(|error| match error {
            LookupError::Rejected(rejected) => SmtpFailure::refused(rejected.reason),
            LookupError::Io(_) => SmtpFailure {
                is_answered: true,
                ..SmtpFailure::unknown("the name of the mail server is not known")
            },
        })?;
        let Some(first) = found.first().map(|address| address.ip()) else {
            return Err(SmtpFailure::refused("the mail server has no address"));
        };
        if self.server.security == SmtpSecurity::None && !first.is_loopback() {
            return Err(SmtpFailure::refused(
                "without TLS no other machine is spoken to",
            ));
        }
        Ok(first)
    }
}

/// Whether a text is one mail address, with or without a name.
pub fn is_mail_address(text: &str) -> bool {
    mailbox(text).is_ok()
}

fn mailbox(text: &str) -> Result<Mailbox, SmtpFailure> {
    let is_plain = !text.chars().any(char::is_control);
    let read = is_plain.then(|| text.trim().parse().ok()).flatten();
    read.ok_or_else(|| SmtpFailure::refused("the recipient or sender is no mail address"))
}

fn compose(mail: &Mail<'_>) -> Result<Message, SmtpFailure> {
    let subject: String = mail
        .subject
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    // Programs that answer mails leave it alone.
    let automatic = HeaderValue::new(
        HeaderName::new_from_ascii_str("Auto-Submitted"),
        "auto-generated".to_owned(),
    );
    Message::builder()
        .from(mailbox(mail.from)?)
        .to(mailbox(mail.to)?)
        .subject(subject)
        .message_id(Some(format!("<{}>", mail.message_id)))
        .raw_header(automatic)
        .header(ContentType::TEXT_PLAIN)
        .body(mail.text.to_owned())
        .map_err(|_| SmtpFailure::refused("the mail cannot be written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(to: &str, subject: &str) -> Result<String, SmtpFailure> {
        let mail = Mail {
            from: "Desk <desk@example.com>",
            to,
            subject,
            text: "Hello\n.\nBcc: x@example.com",
            message_id: "k1@example.com",
        };
        let formatted = compose(&mail)?.formatted();
        Ok(String::from_utf8(formatted).expect("mails are text"))
    }

    #[test]
    fn a_line_break_begins_no_header() {
        let mail = written("ana@example.com", "Hi\r\nBcc: eve@example.com").expect("a mail");
        let (head, _) = mail.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains("Message-ID: <k1@example.com>"), "{head}");
        let begins_bcc = |line: &str| line.to_lowercase().starts_with("bcc");
        assert!(!head.lines().any(begins_bcc), "{head}");
        for to in [
            "ana@example.com\r\nBcc: eve@example.com",
            "ana@example.com\n",
            "ana@example.com, eve@example.com",
            "ana",
            "",
        ] {
            assert!(written(to, "Hi").is_err(), "{to:?}");
        }
    }

    #[test]
    fn only_allowed_servers_are_opened() {
        let server = |host: &str| SmtpServer {
            host: host.to_owned(),
            port: 25,
            security: SmtpSecurity::None,
            credentials: None,
            timeout_ms: 1_000,
        };
        let open = |host: &str| SmtpCaller::new(Arc::default(), server(host)).map(drop);
        assert!(open("mail.example.com").is_ok());
        for host in [
            "127.0.0.1",
            "localhost",
            "metadata.google.internal",
            "a/b@c",
        ] {
            assert!(open(host).is_err(), "{host}");
        }
    }

    #[tokio::test]
    async fn without_tls_no_other_machine_is_spoken_to() {
        let server = SmtpServer {
            host: "192.0.2.1".to_owned(),
            port: 25,
            security: SmtpSecurity::None,
            credentials: None,
            timeout_ms: 1_000,
        };
        let guard = UrlGuard {
            allow_private: true,
            ..UrlGuard::default()
        };
        let Ok(caller) = SmtpCaller::new(Arc::new(guard), server) else {
            // The address is refused before anything is sent.
            return;
        };
        let mail = Mail {
            from: "a@example.com",
            to: "b@example.com",
            subject: "s",
            text: "t",
            message_id: "k@example.com",
        };
        let refused = caller.send(&mail).await.expect_err("no machine");
        assert!(!refused.is_transient, "{refused:?}");
    }
}
