//! Hands a text of a session to its transport: its parts one after the other, and its speech.

use super::agent_host::{AgentHost, CallContext, OutgoingMessage};
use super::media::{MAX_MEDIA_BYTES, MediaContent};
use super::send_retry::{may_try_again, part_key};
use super::session_work::{SessionOutcome, failed};
use crate::runtime::Runtime;
use tandem_engine::session::ChatSession;
use tandem_record::conversation::{
    CodeError, Modality, SendRequest, SentMessage, WINDOW_CLOSED, WorkOutcome,
};
use tandem_record::{EffectId, MediaId};
use tandem_store::Fault;

/// Why a text that was to be spoken was sent as text.
const NO_SPEECH: &str = "the transport takes no speech";

impl Runtime {
    /// How long a text waited for its delivery (Z-232).
    #[expect(clippy::cast_precision_loss, reason = "an approximate age is enough")]
    fn note_sent(&self, session: &ChatSession, key: &EffectId) {
        if let Some(queued) = session.queued_at(key) {
            let age_ms = self.clock().now().ms_since(queued);
            let metrics = &self.inner.metrics.conversations;
            metrics.send_seconds.observe(age_ms as f64 / 1000.0);
        }
    }

    pub(super) async fn send(
        &self,
        session: &ChatSession,
        agents: &dyn AgentHost,
        request: &SendRequest,
        context: &CallContext,
        may_be_repeated: bool,
    ) -> Result<SessionOutcome, Fault> {
        let spoken = match request.modality {
            Modality::Voice if !agents.takes_speech(&context.agent, &request.transport) => {
                Err(failed(NO_SPEECH.to_owned()))
            }
            Modality::Voice => {
                self.speech_of(agents, &request.text, session, context)
                    .await?
            }
            Modality::Text => Ok(None),
        };
        let (speech, speech_error) = match spoken {
            Ok(speech) => (speech, None),
            Err(mut error) => {
                self.redact_in_place(&mut error.message);
                (None, Some(error.message))
            }
        };
        let parts = agents.parts(&context.agent, &request.transport, &request.text);
        let sent_before = request.sent_parts.len();
        let is_last = sent_before + 1 >= parts.len();
        let key = part_key(&context.key, sent_before);
        self.inner.crash.reach("before_send");
        let start = session.start();
        let is_user = request.to == start.address && request.transport == start.transport;
        let message = OutgoingMessage {
            transport: &request.transport,
            to: &request.to,
            text: parts.get(sent_before).map_or("", String::as_str),
            // What was said is sent once, with the first words.
            speech: speech
                .as_ref()
                .map(|(_, content)| content)
                .filter(|_| sent_before == 0),
            key: &key,
            may_be_repeated,
            origin: request.origin,
            last_received_at: session.last_received_at().filter(|_| is_user),
        };
        Ok(match agents.send(&message, context).await {
            // A template stands for the whole text.
            Ok(taken) if !is_last && taken.template.is_none() => SessionOutcome::SendNext(taken.id),
            Ok(taken) => {
                self.inner.crash.reach("after_send");
                self.note_sent(session, &context.key);
                let mut ids = request.sent_parts.iter().cloned().chain([taken.id]);
                let provider_message_id = ids.next().flatten();
                SessionOutcome::Done(WorkOutcome::Sent(Ok(SentMessage {
                    provider_message_id,
                    further_ids: ids.flatten().collect(),
                    speech: speech.map(|(id, content)| content.named(id)),
                    speech_error,
                    template: taken.template,
                })))
            }
            Err(error) if may_try_again(&error, request.attempts) => {
                SessionOutcome::SendAgain(error)
            }
            Err(error) => SessionOutcome::Done(WorkOutcome::Sent(Err(CodeError {
                code: match error.is_window_closed {
                    true => WINDOW_CLOSED.to_owned(),
                    false => "failed".to_owned(),
                },
                message: error.message,
            }))),
        })
    }

    /// The speech of a text, made once: it is stored before it is sent, and a later attempt finds it (Z-247).
    async fn speech_of(
        &self,
        agents: &dyn AgentHost,
        text: &str,
        session: &ChatSession,
        context: &CallContext,
    ) -> Result<Result<Option<(MediaId, MediaContent)>, CodeError>, Fault> {
        let key = context.key.as_str();
        let own = key.strip_prefix(session.id().as_str()).unwrap_or(key);
        let id = MediaId::from(format!("out-{}", own.trim_start_matches(':')));
        if let Some(made) = self.read_media(session.id(), &id).await? {
            return Ok(Ok(Some((id, made))));
        }
        let made = agents.synthesize(text, context).await;
        self.note_circuits(session, agents, context).await?;
        let made = match made {
            Ok(Some(made)) => made,
            Ok(None) => return Ok(Ok(None)),
            Err(error) => return Ok(Err(error)),
        };
        if made.bytes.len() > MAX_MEDIA_BYTES || !made.fits_beside(session.media_bytes()) {
            return Ok(Err(failed("the speech has too many bytes".to_owned())));
        }
        self.store_media(&context.tenant, session.id(), &id, &made)
            .await?;
        Ok(Ok(Some((id, made))))
    }
}
