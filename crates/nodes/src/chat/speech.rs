//! Speech in and out, as traits and over OpenAI-compatible audio endpoints.

use super::failure::ProviderFailure;
use super::retry::{RetrySettings, with_retries};
use super::speech_form;
use crate::client::ClientError;
use crate::http::CallLimits;
use crate::model::connection::{HostedProvider, ModelApi, ProviderConnection, ProviderRequest};
use crate::model::failure::{CallError, CallErrorReason as Reason};
use async_trait::async_trait;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use std::time::Duration;
use tandem_record::EffectId;

const TRANSCRIPTIONS: &str = "audio/transcriptions";
const SPEECH: &str = "audio/speech";

/// Turns speech into text.
#[async_trait]
pub trait SpeechToText: Send + Sync {
    /// What is said in a recording; never blank.
    async fn transcribe(&self, request: &TranscriptionRequest) -> Result<String, ProviderFailure>;
}

/// Turns text into speech.
#[async_trait]
pub trait TextToSpeech: Send + Sync {
    /// A recording of the text; never empty.
    async fn synthesize(&self, request: &SynthesisRequest) -> Result<SpeechAudio, ProviderFailure>;
}

/// A recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeechAudio {
    pub content_type: String,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct TranscriptionRequest {
    /// The identity of the call: the same at every attempt.
    pub key: EffectId,
    pub audio: SpeechAudio,
    /// ISO 639-1 code; `None` to detect the language.
    pub language: Option<String>,
    /// Bounds the whole call, retries included.
    pub timeout: Duration,
    pub retry: RetrySettings,
}

#[derive(Clone, Debug)]
pub struct SynthesisRequest {
    /// The identity of the call: the same at every attempt.
    pub key: EffectId,
    pub text: String,
    pub voice: String,
    pub format: SpeechFormat,
    /// Bounds the whole call, retries included.
    pub timeout: Duration,
    pub retry: RetrySettings,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpeechFormat {
    #[default]
    Mp3,
    /// In an Ogg container, as voice messages of messengers are.
    Opus,
    Wav,
}

impl SpeechFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Mp3 => "mp3",
            Self::Opus => "opus",
            Self::Wav => "wav",
        }
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Mp3 => "audio/mpeg",
            Self::Opus => "audio/ogg",
            Self::Wav => "audio/wav",
        }
    }
}

/// Bounds of speech calls, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeechLimits {
    /// Of a recording, sent or received.
    pub audio_bytes: usize,
    /// Of a text, sent or received.
    pub text_bytes: usize,
}

impl Default for SpeechLimits {
    fn default() -> Self {
        Self {
            audio_bytes: 25 * 1024 * 1024,
            text_bytes: 64 * 1024,
        }
    }
}

/// A provider of speech as it is configured.
#[derive(Debug)]
pub struct SpeechSettings {
    /// The provider's name in failures and logs.
    pub provider: String,
    /// Its API is that of OpenAI, whatever `model_api` says.
    pub hosted: HostedProvider,
    pub transcription_model: String,
    pub synthesis_model: String,
    pub limits: SpeechLimits,
}

/// Speech over the network.
pub struct HostedSpeech {
    connection: ProviderConnection,
    transcription_model: String,
    synthesis_model: String,
    limits: SpeechLimits,
}

impl HostedSpeech {
    pub fn new(settings: SpeechSettings, limits: CallLimits) -> Result<Self, ClientError> {
        let hosted = HostedProvider {
            model_api: ModelApi::OpenAi,
            ..settings.hosted
        };
        Ok(Self {
            connection: ProviderConnection::new(&settings.provider, hosted, limits)?,
            transcription_model: settings.transcription_model,
            synthesis_model: settings.synthesis_model,
            limits: settings.limits,
        })
    }

    fn failure(&self, error: &CallError) -> ProviderFailure {
        ProviderFailure::from_call(error, &self.connection.name)
    }

    async fn attempt_transcription(
        &self,
        request: &TranscriptionRequest,
    ) -> Result<String, CallError> {
        if request.audio.bytes.len() > self.limits.audio_bytes {
            return Err(Reason::InputTooLong.into());
        }
        let language = request.language.as_deref();
        let form = speech_form::encode(&request.audio, &self.transcription_model, language);
        let outgoing = ProviderRequest {
            path: TRANSCRIPTIONS,
            content_type: &form.content_type,
            body: form.body,
            effect: &request.key,
            trace: None,
            timeout: request.timeout,
        };
        let mut response = self.connection.post(outgoing).await?;
        let limit = self.limits.text_bytes;
        let bytes = self.connection.read(&mut response, limit).await?;
        let body: Value = serde_json::from_slice(&bytes).map_err(|_| Reason::Unreadable)?;
        let text = body.get("text").and_then(Value::as_str);
        let text = text.ok_or(Reason::Unreadable)?.trim();
        match text {
            "" => Err(Reason::Empty.into()),
            text => Ok(text.to_owned()),
        }
    }

    async fn attempt_synthesis(
        &self,
        request: &SynthesisRequest,
    ) -> Result<SpeechAudio, CallError> {
        if request.text.len() > self.limits.text_bytes {
            return Err(Reason::InputTooLong.into());
        }
        let body = json!({
            "model": self.synthesis_model,
            "input": request.text,
            "voice": request.voice,
            "response_format": request.format.name(),
        });
        let outgoing = ProviderRequest {
            path: SPEECH,
            content_type: "application/json",
            body: body.to_string().into_bytes(),
            effect: &request.key,
            trace: None,
            timeout: request.timeout,
        };
        let mut response = self.connection.post(outgoing).await?;
        // An error page is not a recording.
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/") || kind.starts_with("application/json") {
            return Err(Reason::Unreadable.into());
        }
        let limit = self.limits.audio_bytes;
        let bytes = self.connection.read(&mut response, limit).await?;
        if bytes.is_empty() {
            return Err(Reason::Empty.into());
        }
        Ok(SpeechAudio {
            content_type: request.format.content_type().to_owned(),
            bytes,
        })
    }
}

#[async_trait]
impl SpeechToText for HostedSpeech {
    async fn transcribe(&self, request: &TranscriptionRequest) -> Result<String, ProviderFailure> {
        let (provider, retry) = (self.connection.name.as_str(), &request.retry);
        let attempt = || async {
            let done = self.attempt_transcription(request).await;
            done.map_err(|error| self.failure(&error))
        };
        with_retries(provider, retry, request.timeout, || true, attempt).await
    }
}

#[async_trait]
impl TextToSpeech for HostedSpeech {
    async fn synthesize(&self, request: &SynthesisRequest) -> Result<SpeechAudio, ProviderFailure> {
        let (provider, retry) = (self.connection.name.as_str(), &request.retry);
        let attempt = || async {
            let done = self.attempt_synthesis(request).await;
            done.map_err(|error| self.failure(&error))
        };
        with_retries(provider, retry, request.timeout, || true, attempt).await
    }
}
