//! Frames of clients of the UI channel, and why a connection is closed.

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes};
use serde::Deserialize;
use tandem_app::conversation::VisitorCursor;
use tandem_record::{MediaId, Seq, SessionId};

/// One frame of a client.
#[derive(Debug, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
pub(super) enum ClientFrame {
    /// The first frame.
    Connect {
        /// The token of an earlier connection; absent for somebody new.
        #[serde(default)]
        client_id: Option<String>,
        /// What the client has seen already: a session, and the last sequence of it.
        #[serde(default)]
        session_id: Option<SessionId>,
        #[serde(default)]
        after: Option<Seq>,
    },
    InboundMessage {
        body: String,
        #[serde(default)]
        message_id: Option<String>,
        /// A recording or file.
        #[serde(default)]
        media: Option<ClientMedia>,
    },
    /// Asks for the bytes of a recording of the conversation.
    GetMedia { id: MediaId },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientMedia {
    pub(super) content_type: String,
    /// In base64.
    pub(super) data: String,
}

impl ClientFrame {
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

pub(super) fn cursor(session: Option<SessionId>, after: Option<Seq>) -> Option<VisitorCursor> {
    let (session, after) = session.zip(after)?;
    Some(VisitorCursor { session, after })
}

/// Why the host closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// The host shuts down; the client connects again.
    GoingAway,
    /// The client sends what this channel does not know, or too much of it.
    Policy(&'static str),
    /// There is no room now; the client connects again later.
    TryAgainLater,
}

impl Closing {
    pub(super) fn frame(self) -> Message {
        // Codes of RFC 6455 and of its registry.
        let (code, reason) = match self {
            Self::GoingAway => (1001, "the host is restarting"),
            Self::Policy(reason) => (1008, reason),
            Self::TryAgainLater => (1013, "try again later"),
        };
        Message::Close(Some(CloseFrame {
            code,
            reason: Utf8Bytes::from_static(reason),
        }))
    }
}
