//! A transport that is ready to be used: what all kinds have in common is done here. It keeps the network's limits:
//! how often, how much at once, until when, and how often again.

use super::common_settings::{CommonSettings, Delivery, MessageTemplate};
use super::send_rate::{Rate, SendRate};
use super::text_parts::{TextLimit, split};
use super::{ChatTransport, NetworkLimits};
use std::sync::Arc;
use tandem_record::{EffectId, Timestamp};
use tandem_runtime::Clock;
use tandem_runtime::conversation::{OutgoingMessage, QuestionNotice, SendError, TakenMessage};

pub(crate) struct OpenTransport {
    pub(crate) network: Arc<dyn ChatTransport>,
    common: CommonSettings,
    window_ms: Option<u64>,
    text_limit: Option<TextLimit>,
    rate: SendRate,
    clock: Arc<dyn Clock>,
}

impl OpenTransport {
    pub(super) fn new(
        network: Arc<dyn ChatTransport>,
        common: CommonSettings,
        limits: &NetworkLimits,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let window = common.reply_window_seconds.or(limits.reply_window_seconds);
        let own_rate = common.messages_per_second.map(|n| Rate::new(n, 1_000));
        Self {
            network,
            window_ms: window.map(|seconds| seconds * 1_000),
            text_limit: limits.text,
            rate: SendRate::new(own_rate.or(limits.rate), limits.rate_per_address),
            common,
            clock,
        }
    }

    /// One that keeps no limits.
    pub(crate) fn unlimited(network: Arc<dyn ChatTransport>, clock: Arc<dyn Clock>) -> Self {
        Self::new(
            network,
            CommonSettings::default(),
            &NetworkLimits::NONE,
            clock,
        )
    }

    pub(crate) fn parts(&self, text: &str) -> Vec<String> {
        match self.text_limit {
            Some(limit) => split(text, limit),
            None => vec![text.to_owned()],
        }
    }

    pub(crate) async fn send(
        &self,
        message: &OutgoingMessage<'_>,
    ) -> Result<TakenMessage, SendError> {
        self.check_repetition(message.may_be_repeated)?;
        let template = self.common.template(message.origin);
        if self.is_window_closed(message.last_received_at) {
            let template = template.ok_or_else(SendError::window_closed)?;
            return self.send_template(message, template).await;
        }
        self.take_turn(message.to)?;
        match (self.network.send(message).await, template) {
            (Ok(id), _) => Ok(TakenMessage { id, template: None }),
            // The network knows better when the recipient last wrote.
            (Err(error), Some(template)) if error.is_window_closed => {
                self.send_template(message, template).await
            }
            (Err(error), _) => Err(error),
        }
    }

    async fn send_template(
        &self,
        message: &OutgoingMessage<'_>,
        template: &MessageTemplate,
    ) -> Result<TakenMessage, SendError> {
        self.take_turn(message.to)?;
        let key = EffectId::from(format!("{}.template", message.key));
        let message = OutgoingMessage {
            key: &key,
            speech: None,
            ..*message
        };
        let id = self.network.send_template(&message, template).await?;
        Ok(TakenMessage {
            id,
            template: Some(template.name.clone()),
        })
    }

    pub(crate) async fn notify(&self, notice: &QuestionNotice<'_>) -> Result<(), SendError> {
        self.check_repetition(notice.may_be_repeated)?;
        self.take_turn(notice.to)?;
        self.network.notify(notice).await
    }

    fn check_repetition(&self, may_be_repeated: bool) -> Result<(), SendError> {
        match may_be_repeated && self.common.delivery == Delivery::AtMostOnce {
            true => Err(SendError::permanent(
                "an earlier attempt may have been taken, and none may be repeated",
            )),
            false => Ok(()),
        }
    }

    /// Whether the recipient has not written for too long. Where it is not known when they wrote, the network decides.
    fn is_window_closed(&self, last_received_at: Option<Timestamp>) -> bool {
        let (Some(window), Some(last)) = (self.window_ms, last_received_at) else {
            return false;
        };
        self.clock.now().ms_since(last) > window
    }

    fn take_turn(&self, to: &str) -> Result<(), SendError> {
        self.rate.take(to, self.clock.now()).map_err(|wait_ms| {
            SendError::held("the network takes no more messages just now", wait_ms)
        })
    }
}
