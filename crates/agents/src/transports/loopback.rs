//! The loopback transport: keeps texts where tests can read them (Z-223).

use super::ChatTransport;
use super::common_settings::MessageTemplate;
use crate::test_recorder::{LoopbackReply, TestRecorder};
use async_trait::async_trait;
use std::sync::Arc;
use tandem_runtime::Clock;
use tandem_runtime::conversation::{OutgoingMessage, SendError};

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
    fn takes_speech(&self) -> bool {
        true
    }

    async fn send(&self, message: &OutgoingMessage<'_>) -> Result<Option<String>, SendError> {
        self.take(message, message.text).await
    }

    async fn send_template(
        &self,
        message: &OutgoingMessage<'_>,
        template: &MessageTemplate,
    ) -> Result<Option<String>, SendError> {
        let shown = [
            vec![template.name.clone()],
            template.parameters(message.text),
        ];
        self.take(message, &shown.concat().join("\n")).await
    }
}

impl LoopbackTransport {
    async fn take(
        &self,
        message: &OutgoingMessage<'_>,
        text: &str,
    ) -> Result<Option<String>, SendError> {
        let now = self.clock.now();
        let (to, key) = (message.to, message.key);
        let reply = self.recorder.receive(to, text, key, now).await;
        Err(match reply {
            Ok(LoopbackReply::Accepted { id }) => return Ok(Some(id)),
            Ok(LoopbackReply::Failed) => {
                SendError::transient("the loopback transport was told to fail")
            }
            Ok(LoopbackReply::Paused) => SendError {
                is_held: true,
                ..SendError::transient("the loopback transport is paused")
            },
            Err(fault) => SendError::transient(fault.to_string()),
        })
    }
}
