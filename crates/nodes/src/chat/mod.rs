//! Models of conversations: chat with tools, structured output and streaming, and speech in and out.
//! Owns the APIs of the providers, the retries within one call, and the circuit breakers. Does not
//! know sessions or agents beyond their ids, renders no prompt, and stores nothing itself: what a
//! script has used up is kept by the caller's [`ScriptMemory`].
//!
//! Invariants:
//! - A call ends within its timeout, retries included.
//! - A piece of text that was handed on is part of the answer, or the call fails: a call is not
//!   repeated once a piece of it was handed on.
//! - Nothing a provider sends can panic or fill the memory. What is not a complete answer is a
//!   failure with a code.
//! - Keys and addresses appear in no failure and no log.

mod answer;
mod anthropic;
mod breaker;
mod call;
mod failure;
mod hosted;
mod openai;
mod retry;
mod script_memory;
mod scripted;
mod scripted_speech;
mod speech;
mod speech_form;

pub use breaker::{BreakerSettings, CircuitBreakers, CircuitChange, CircuitCounts, CircuitState};
pub use call::{ChatPieces, ChatReply, ChatRequest, ChatTool};
pub use failure::ProviderFailure;
pub use hosted::{ApiKeyError, ChatSettings, read_api_key};
pub use retry::RetrySettings;
pub use script_memory::{LocalScripts, NotedCall, NotedMessage, ScriptChooser, ScriptMemory};

pub use scripted_speech::ScriptedSpeech;
pub use speech::{
    HostedSpeech, SpeechAudio, SpeechFormat, SpeechLimits, SpeechSettings, SpeechToText,
    SynthesisRequest, TextToSpeech, TranscriptionRequest,
};

use crate::client::ClientError;
use crate::http::CallLimits;
use crate::model::Script;
use call::PieceSink;
use hosted::HostedChat;
use scripted::ScriptedChat;
use std::sync::Arc;

/// The model of an agent.
pub struct ChatModel(Provider);

enum Provider {
    Hosted(Box<HostedChat>),
    Scripted(Box<ScriptedChat>),
}

impl ChatModel {
    /// A model over the network.
    pub fn hosted(settings: ChatSettings, limits: CallLimits) -> Result<Self, ClientError> {
        let hosted = HostedChat::new(settings, limits)?;
        Ok(Self(Provider::Hosted(Box::new(hosted))))
    }

    /// A model that answers from a script.
    pub fn scripted(script: Script, memory: Arc<dyn ScriptMemory>) -> Self {
        let scripted = ScriptedChat::new(script, memory);
        Self(Provider::Scripted(Box::new(scripted)))
    }

    /// The provider's name, by which its circuit breaker is kept.
    pub fn provider(&self) -> &str {
        match &self.0 {
            Provider::Hosted(hosted) => hosted.provider(),
            Provider::Scripted(_) => scripted::PROVIDER,
        }
    }

    /// Calls the model. With `pieces` the answer is streamed: its text is handed on as it arrives,
    /// except where structured output was requested, whose text is JSON.
    pub async fn call(
        &self,
        request: &ChatRequest,
        retry: &RetrySettings,
        pieces: Option<ChatPieces<'_>>,
    ) -> Result<ChatReply, ProviderFailure> {
        let pieces = pieces
            .filter(|_| !request.wants_object())
            .map(PieceSink::new);
        let pieces = pieces.as_ref();
        let may_repeat = || pieces.is_none_or(|pieces| !pieces.has_delivered());
        let provider = self.provider();
        let called = retry::with_retries(provider, retry, request.timeout, may_repeat, || {
            self.attempt(request, pieces)
        });
        called.await.inspect_err(|failure| {
            let (call, code) = (&request.key, failure.error.code.as_str());
            tracing::debug!(%call, provider, code, "no answer");
        })
    }

    async fn attempt(
        &self,
        request: &ChatRequest,
        pieces: Option<&PieceSink<'_>>,
    ) -> Result<ChatReply, ProviderFailure> {
        match &self.0 {
            Provider::Hosted(hosted) => hosted.attempt(request, pieces).await,
            Provider::Scripted(scripted) => scripted.attempt(request, pieces).await,
        }
    }
}
