//! E-mail: texts and notices of questions go out over SMTP. Nothing comes in.

use super::common_settings::{CommonSettings, Delivery, SecretVariable, read_own};
use super::{ChatTransport, NetworkLimits, TransportKind, TransportResources, notice_text};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::sync::Arc;
use tandem_nodes::{Mail, SmtpCaller, SmtpFailure, SmtpSecurity, SmtpServer, is_mail_address};
use tandem_record::EffectId;
use tandem_runtime::conversation::{OutgoingMessage, QuestionNotice, SendError};

pub(super) const KIND: TransportKind = TransportKind {
    name: "email",
    limits: NetworkLimits::NONE,
    takes_decisions: false,
    has_templates: false,
    check,
    open,
};

const DEFAULT_SUBJECT: &str = "A message for you";
const MAX_SUBJECT_CHARS: usize = 150;
const MAX_NAME_CHARS: usize = 255;
const MIN_PASSWORD_CHARS: usize = 8;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    #[serde(rename = "kind")]
    _kind: String,
    /// The server that takes mails.
    host: String,
    port: Option<u16>,
    #[serde(default)]
    security: Security,
    user: Option<String>,
    password: Option<SecretVariable>,
    from: String,
    /// Of texts of conversations.
    subject: Option<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Security {
    #[default]
    Tls,
    Starttls,
    None,
}

impl Security {
    fn of_connection(self) -> (SmtpSecurity, u16) {
        match self {
            Self::Tls => (SmtpSecurity::Tls, 465),
            Self::Starttls => (SmtpSecurity::StartTls, 587),
            Self::None => (SmtpSecurity::None, 25),
        }
    }
}

fn check(settings: &Value) -> Result<(), String> {
    let read: Settings = read_own(settings)?;
    let is_host = |text: &str| {
        let is_plain =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        (1..=MAX_NAME_CHARS).contains(&text.len()) && text.chars().all(is_plain)
    };
    let is_line = |text: &String| {
        (1..=MAX_NAME_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control)
    };
    if !is_host(&read.host) {
        return Err("has a host that is no name of a server".to_owned());
    }
    if read.port == Some(0) {
        return Err("has a port that is not 1 to 65535".to_owned());
    }
    if !is_mail_address(&read.from) {
        return Err("has a from that is no mail address".to_owned());
    }
    if read
        .subject
        .as_ref()
        .is_some_and(|subject| !is_line(subject))
    {
        return Err("has a subject that is not one line".to_owned());
    }
    if read.user.is_some() != read.password.is_some() {
        return Err("needs user and password together".to_owned());
    }
    if read.user.as_ref().is_some_and(|user| !is_line(user)) {
        return Err("has a user that is not one line".to_owned());
    }
    Ok(())
}

fn open(
    settings: &Value,
    common: &CommonSettings,
    resources: &TransportResources,
) -> Result<Arc<dyn ChatTransport>, String> {
    let settings: Settings = read_own(settings)?;
    let (security, usual_port) = settings.security.of_connection();
    let password = settings.password.as_ref();
    let password = password.map(|of| of.read(resources.environment, MIN_PASSWORD_CHARS));
    let server = SmtpServer {
        host: settings.host,
        port: settings.port.unwrap_or(usual_port),
        security,
        credentials: settings.user.zip(password.transpose()?),
        timeout_ms: common.timeout_ms(),
    };
    Ok(Arc::new(Email {
        smtp: SmtpCaller::new(Arc::clone(&resources.guard), server)?,
        from: settings.from,
        subject: settings
            .subject
            .unwrap_or_else(|| DEFAULT_SUBJECT.to_owned()),
        delivery: common.delivery,
    }))
}

/// Without `Debug`: it holds a password.
struct Email {
    smtp: SmtpCaller,
    from: String,
    subject: String,
    delivery: Delivery,
}

impl Email {
    async fn mail(
        &self,
        to: &str,
        subject: &str,
        text: &str,
        key: &EffectId,
    ) -> Result<String, SendError> {
        let message_id = message_id(key, &self.from);
        let mail = Mail {
            from: &self.from,
            to,
            subject,
            text,
            message_id: &message_id,
        };
        let sent = self.smtp.send(&mail).await;
        sent.map_err(|failure| self.send_error(failure))?;
        Ok(message_id)
    }

    fn send_error(&self, failure: SmtpFailure) -> SendError {
        let may_repeat = failure.is_answered || self.delivery == Delivery::AtLeastOnce;
        SendError {
            is_transient: failure.is_transient && may_repeat,
            ..SendError::permanent(failure.message)
        }
    }
}

#[async_trait]
impl ChatTransport for Email {
    async fn send(&self, message: &OutgoingMessage<'_>) -> Result<Option<String>, SendError> {
        self.mail(message.to, &self.subject, message.text, message.key)
            .await
            .map(Some)
    }

    async fn notify(&self, notice: &QuestionNotice<'_>) -> Result<(), SendError> {
        let question = notice.question;
        // A subject is one line.
        let about = question.about.lines().next().unwrap_or_default();
        let subject = format!("{}: {about}", question.need);
        let subject: String = subject.chars().take(MAX_SUBJECT_CHARS).collect();
        let text = notice_text(notice);
        self.mail(notice.to, &subject, &text, notice.key)
            .await
            .map(drop)
    }
}

/// The identity of a mail: programs that read mails show one that arrives twice once.
fn message_id(key: &EffectId, from: &str) -> String {
    let domain = from.rsplit('@').next().unwrap_or_default();
    let domain = domain.trim_end_matches('>');
    let digest = Sha256::digest(key.as_str());
    let digits = digest[..16].iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    format!("{digits}@{domain}")
}
