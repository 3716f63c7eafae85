//! How conversations reach networks and come from them. The seam that a new network is added at.
//!
//! Owns: the trait of transports, the kinds an agent file may name under `transports`, and the two transports that
//! every host has: the web chat, and the loopback transport for tests. A kind is one module beside this one and one
//! line in [`KINDS`]; `webhook.rs` is the one to start from.
//!
//! What a transport does not do: it queues nothing, retries nothing and remembers nothing. Messages to one address
//! are handed over one at a time, in order, again with the same key after a failure or a crash (Z-197 … Z-199).
//! Messages it delivers are claimed by their ids before anything follows from them (Z-10).

mod common_settings;
mod email;
mod life_signs;
mod loopback;
mod network_api;
mod notice_links;
mod open_transport;
mod send_rate;
mod slack;
mod telegram;
mod text_parts;
mod webhook;
mod whatsapp;

pub use common_settings::MessageTemplate;
pub use life_signs::LifeSigns;
pub use loopback::LoopbackTransport;
pub use notice_links::NoticeLinks;
pub(crate) use open_transport::OpenTransport;

use async_trait::async_trait;
use common_settings::CommonSettings;
use send_rate::Rate;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tandem_engine::agent::WEB_TRANSPORT;
use tandem_nodes::{HttpCaller, UrlGuard};
use tandem_runtime::Clock;
use tandem_runtime::conversation::{
    LifeSign, NoticeContent, NoticePlace, OutgoingMessage, QuestionNotice, SendError,
    ShownDecision, TransportDelivery, TransportRefusal, TransportRequest,
};
use text_parts::TextLimit;

/// One connection to a network.
#[async_trait]
pub trait ChatTransport: Send + Sync {
    /// Hands a message to the network, and ends within a bounded time. An implementation gives the key to the
    /// network if that knows message ids of clients: the same message may be sent twice with it (Z-198). One that
    /// must not send twice refuses a message that may have been sent. Returns the id that the network gave the
    /// message, if it gives one. The text is no longer than the limits of the kind say.
    async fn send(&self, message: &OutgoingMessage<'_>) -> Result<Option<String>, SendError>;

    /// Sends a text that the network knows by its name, instead of the message's own (Z-240).
    async fn send_template(
        &self,
        _: &OutgoingMessage<'_>,
        _: &MessageTemplate,
    ) -> Result<Option<String>, SendError> {
        Err(SendError::window_closed())
    }

    /// Tells somebody of a question. In words, unless the network has more to offer.
    async fn notify(&self, notice: &QuestionNotice<'_>) -> Result<(), SendError> {
        let text = notice_text(notice);
        let message = OutgoingMessage {
            transport: notice.transport,
            to: notice.to,
            text: &text,
            speech: None,
            key: notice.key,
            may_be_repeated: notice.may_be_repeated,
            origin: None,
            last_received_at: None,
        };
        self.send(&message).await.map(drop)
    }

    /// Whether [`Self::send`] sends the speech of a message. Without it none is made for the transport (Z-40).
    fn takes_speech(&self) -> bool {
        false
    }

    /// After how long the network takes typing for over; the sign is shown again before. `None` where it lasts until its
    /// end is shown.
    fn typing_lasts(&self) -> Option<Duration> {
        None
    }

    /// Whether [`Self::show`] does something for this kind of sign.
    fn offers(&self, _: &LifeSign) -> bool {
        false
    }

    /// Shows a sign of life (Z-244). Nobody learns of a failure.
    async fn show(&self, _: &LifeSign) {}

    /// Shows what became of a decision that was made on the network. Nobody learns of a failure.
    async fn show_decision(&self, _: &ShownDecision) {}

    /// Answers the network when it asks whether the route is the transport's.
    fn verify_address(&self, _: &BTreeMap<String, String>) -> Result<String, TransportRefusal> {
        Err(TransportRefusal::Unknown)
    }

    /// Reads what the network delivers to the transport's route, after it has verified that it comes from there.
    fn receive(&self, _: &TransportRequest<'_>) -> Result<TransportDelivery, TransportRefusal> {
        Err(TransportRefusal::Unknown)
    }
}

/// What transports use.
#[derive(Clone)]
pub struct TransportResources {
    /// For calls of addresses that an agent file names: guarded, and with TLS.
    pub http: Arc<HttpCaller>,
    /// For calls that are no HTTP.
    pub guard: Arc<UrlGuard>,
    /// Reads an environment variable, for secrets that an agent file names.
    pub environment: fn(&str) -> Option<String>,
    pub clock: Arc<dyn Clock>,
    /// Makes links for notices; `None` while the host has no public address.
    pub links: Option<Arc<NoticeLinks>>,
}

/// What the network of a kind takes. Settings of an agent file may say otherwise.
pub(crate) struct NetworkLimits {
    /// How long after a user's message they may be written to.
    reply_window_seconds: Option<u64>,
    /// The longest text of one message.
    text: Option<TextLimit>,
    rate: Option<Rate>,
    rate_per_address: Option<Rate>,
}

impl NetworkLimits {
    const NONE: Self = Self {
        reply_window_seconds: None,
        text: None,
        rate: None,
        rate_per_address: None,
    };
}

/// Opens a transport whose settings were checked, from its own settings and the common ones. Fails while a secret is
/// missing.
type OpenNetwork =
    fn(&Value, &CommonSettings, &TransportResources) -> Result<Arc<dyn ChatTransport>, String>;

/// A kind of transport that an agent file may name.
struct TransportKind {
    name: &'static str,
    limits: NetworkLimits,
    /// Whether it can send templates.
    has_templates: bool,
    /// Whether questions can be decided on the network.
    takes_decisions: bool,
    /// What is wrong with its own settings, when the agent is loaded.
    check: fn(&Value) -> Result<(), String>,
    open: OpenNetwork,
}

const KINDS: [TransportKind; 5] = [
    webhook::KIND,
    telegram::KIND,
    whatsapp::KIND,
    slack::KIND,
    email::KIND,
];

/// What an agent file may say about the loopback transport.
const LOOPBACK_KEYS: [&str; 2] = ["replyWindowSeconds", "templates"];

fn kind_of(settings: &Value) -> Result<&'static TransportKind, String> {
    let names = || KINDS.map(|kind| kind.name).join(", ");
    let Some(name) = settings.get("kind").and_then(Value::as_str) else {
        return Err(format!("needs a kind: one of {}", names()));
    };
    let found = KINDS.iter().find(|kind| kind.name == name);
    found.ok_or_else(|| format!("has the unknown kind {name:?}; known are {}", names()))
}

/// What is wrong with the transports of an agent file: each with its name.
pub(crate) fn problems(transports: &BTreeMap<String, Value>) -> Vec<(String, String)> {
    let checked = transports.iter().filter_map(|(name, settings)| {
        let fits = name.len() <= 64
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        let checked = match name.as_str() {
            // The rules read them.
            WEB_TRANSPORT => Ok(()),
            LoopbackTransport::NAME => check_loopback(settings),
            _ if fits => check(settings),
            _ => Err("has a name that is not up to 64 letters, digits, '-' and '_'".to_owned()),
        };
        checked.err().map(|problem| (name.clone(), problem))
    });
    checked.collect()
}

fn check(settings: &Value) -> Result<(), String> {
    let kind = kind_of(settings)?;
    let (common, own) = CommonSettings::split(settings)?;
    if !common.templates.is_empty() && !kind.has_templates {
        return Err(format!(
            "has templates, which a {} does not send",
            kind.name
        ));
    }
    let window = common
        .reply_window_seconds
        .or(kind.limits.reply_window_seconds);
    if !common.templates.is_empty() && window.is_none() {
        return Err("has templates, which need replyWindowSeconds".to_owned());
    }
    (kind.check)(&own)
}

/// What is known of a transport that is to give notices; `Err` if it cannot give any.
pub(crate) fn notice_place(name: &str, settings: &Value) -> Result<NoticePlace, String> {
    let (common, _) = CommonSettings::split(settings)?;
    let takes_decisions = match name {
        WEB_TRANSPORT => return Err("the web chat gives no notices".to_owned()),
        LoopbackTransport::NAME => false,
        _ => kind_of(settings)?.takes_decisions,
    };
    Ok(NoticePlace {
        owner: common.owner(),
        takes_decisions,
    })
}

fn check_loopback(settings: &Value) -> Result<(), String> {
    let given = settings.as_object().into_iter().flatten();
    let unknown = given.map(|(key, _)| key.as_str());
    if let Some(key) = unknown.into_iter().find(|key| !LOOPBACK_KEYS.contains(key)) {
        return Err(format!("has the unknown setting {key:?}"));
    }
    CommonSettings::split(settings).map(drop)
}

/// Opens a transport that an agent file describes; `builtin` is the host's own one of this name.
pub(crate) fn open(
    settings: &Value,
    builtin: Option<&Arc<dyn ChatTransport>>,
    resources: &TransportResources,
) -> Result<OpenTransport, String> {
    let (common, own) = CommonSettings::split(settings)?;
    let clock = Arc::clone(&resources.clock);
    if let Some(network) = builtin {
        let limits = &NetworkLimits::NONE;
        return Ok(OpenTransport::new(network.clone(), common, limits, clock));
    }
    let kind = kind_of(settings)?;
    let network = (kind.open)(&own, &common, resources)?;
    Ok(OpenTransport::new(network, common, &kind.limits, clock))
}

/// A notice in words, with what to do.
fn notice_text(notice: &QuestionNotice<'_>) -> String {
    let question = notice.question;
    let mut text = format!("{}: {}", question.headline, question.about);
    for (name, value) in facts(question) {
        text.push_str(&format!("\n{name}: {value}"));
    }
    if let Some(link) = notice.link {
        text.push_str(&format!("\nLook at it: {link}"));
    }
    text.push_str(&format!("\n{}", question.next));
    text
}

/// What else somebody has to know, with the deadline.
fn facts(question: &NoticeContent) -> impl Iterator<Item = (&'static str, String)> {
    let until = question
        .deadline
        .map(|deadline| ("Until", deadline.rfc3339()));
    question.facts.iter().cloned().chain(until)
}

/// The web chat (Z-41). Visitors read their texts from the session's log, so a text that is in the log has arrived.
pub struct WebChatTransport;

#[async_trait]
impl ChatTransport for WebChatTransport {
    fn takes_speech(&self) -> bool {
        true
    }

    async fn send(&self, _: &OutgoingMessage<'_>) -> Result<Option<String>, SendError> {
        Ok(None)
    }
}
