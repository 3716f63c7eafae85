//! How texts leave the host: one trait, the web chat, and the loopback transport for tests.

use crate::test_recorder::{LoopbackReply, TestRecorder};
use async_trait::async_trait;
use std::sync::Arc;
use tandem_record::EffectId;
use tandem_runtime::Clock;
use tandem_runtime::conversation::SendError;

/// Hands texts to a network. An implementation gives the key to the network if that knows message ids of
/// clients: the same text may be sent twice with it (Z-198).
#[async_trait]
pub trait ChatTransport: Send + Sync {
    /// Returns the id that the network gave the message, if it gives one.
    async fn send(&self, to: &str, text: &str, key: &EffectId)
    -> Result<Option<String>, SendError>;
}

/// The web chat (Z-41). Visitors read their texts from the session's log, so a text that is in the log has arrived.
pub struct WebChatTransport;

#[async_trait]
impl ChatTransport for WebChatTransport {
    async fn send(&self, _: &str, _: &str, _: &EffectId) -> Result<Option<String>, SendError> {
        Ok(None)
    }
}

/// Keeps texts where tests can read them (Z-223).
pub struct LoopbackTransport {
    recorder: Arc<dyn TestRecorder>,
    clock: Arc<dyn Clock>,
}

impl LoopbackTransport {
    pub const NAME: &str = "loopback";

    pub fn new(recorder: Arc<dyn TestRecorder>, clock: Arc<dyn Clock>) -> Self {
        Self { recorder, clock }
    }
}

#[async_trait]
impl ChatTransport for LoopbackTransport {
    async fn send(
        &self,
        to: &str,
        text: &str,
        key: &EffectId,
    ) -> Result<Option<String>, SendError> {
        let now = self.clock.now();
        let problem = match self.recorder.receive(to, text, key, now).await {
            Ok(LoopbackReply::Accepted { id }) => return Ok(Some(id)),
            Ok(LoopbackReply::Failed) => "the loopback transport was told to fail".to_owned(),
            Ok(LoopbackReply::Paused) => "the loopback transport is paused".to_owned(),
            Err(fault) => fault.to_string(),
        };
        Err(SendError {
            message: problem,
            is_transient: true,
        })
    }
}
