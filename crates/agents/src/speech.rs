//! Speech of agents: from the provider in an agent's configuration to calls that understand and make it.

use crate::agent_version::AgentVersion;
use crate::chat_models::{ModelAccess, unusable};
use crate::host::{FolderAgents, error};
use std::sync::Arc;
use std::time::Duration;
use tandem_engine::agent::{AgentSpec, AgentSpeech, SpeechEncoding};
use tandem_nodes::{
    HostedSpeech, ModelApi, RetrySettings, ScriptedSpeech, SpeechAudio, SpeechFormat, SpeechLimits,
    SpeechSettings, SpeechToText, SynthesisRequest, TextToSpeech, TranscriptionRequest,
};
use tandem_record::conversation::CodeError;
use tandem_runtime::conversation::{CallContext, MAX_MEDIA_BYTES, MediaContent};

const SCRIPTED: &str = "scripted speech";
/// Bytes of a text that is spoken, and of what is understood.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Who understands and makes the speech of one version of an agent.
pub(crate) struct Speech {
    to_text: Arc<dyn SpeechToText>,
    of_text: Arc<dyn TextToSpeech>,
    /// The provider's name, for its circuit breaker.
    provider: String,
    format: SpeechFormat,
}

impl Speech {
    fn new<S: SpeechToText + TextToSpeech + 'static>(
        speech: S,
        provider: String,
        format: SpeechFormat,
    ) -> Self {
        let speech = Arc::new(speech);
        Self {
            to_text: speech.clone(),
            of_text: speech,
            provider,
            format,
        }
    }
}

impl ModelAccess {
    /// The speech of a version; `None` if it has none. It is built once.
    fn speech(&self, version: &AgentVersion) -> Result<Option<Arc<Speech>>, CodeError> {
        let Some(settings) = &version.spec.speech else {
            return Ok(None);
        };
        if let Some(built) = version.speech.get() {
            return Ok(Some(built.clone()));
        }
        let speech = Arc::new(self.build_speech(settings)?);
        Ok(Some(version.speech.get_or_init(|| speech).clone()))
    }

    fn build_speech(&self, settings: &AgentSpeech) -> Result<Speech, CodeError> {
        match settings {
            AgentSpeech::Scripted { transcript, fail } => {
                let scripted = ScriptedSpeech {
                    transcript: transcript.clone(),
                    fail: fail.clone(),
                };
                let format = SpeechFormat::default();
                Ok(Speech::new(scripted, SCRIPTED.to_owned(), format))
            }
            AgentSpeech::Provider {
                provider,
                base_url,
                api_key_env,
                transcription_model,
                synthesis_model,
                format,
            } => {
                let (base_url, variable) = (base_url.as_deref(), api_key_env.as_deref());
                let hosted = self.hosted_provider(provider, base_url, variable)?;
                if hosted.model_api != ModelApi::OpenAi {
                    return Err(unusable(format!(
                        "{provider:?} has no endpoints for speech"
                    )));
                }
                let name = format!("speech of {provider}");
                let settings = SpeechSettings {
                    provider: name.clone(),
                    hosted,
                    transcription_model: transcription_model.clone(),
                    synthesis_model: synthesis_model.clone(),
                    limits: SpeechLimits {
                        audio_bytes: MAX_MEDIA_BYTES,
                        text_bytes: MAX_TEXT_BYTES,
                    },
                };
                let speech = HostedSpeech::new(settings, self.limits);
                let speech = speech.map_err(|why| unusable(why.to_string()))?;
                let format = match format {
                    SpeechEncoding::Mp3 => SpeechFormat::Mp3,
                    SpeechEncoding::Opus => SpeechFormat::Opus,
                    SpeechEncoding::Wav => SpeechFormat::Wav,
                };
                Ok(Speech::new(speech, name, format))
            }
        }
    }
}

impl FolderAgents {
    pub(crate) async fn transcribe_recording(
        &self,
        version: &AgentVersion,
        recording: &MediaContent,
        timeout_ms: u64,
        context: &CallContext,
    ) -> Result<String, CodeError> {
        let Some(speech) = self.resources.models.speech(version)? else {
            let message = format!("agent {} has no provider of speech", context.agent);
            return Err(error("not_found", message));
        };
        let language = version.spec.language.code();
        let request = TranscriptionRequest {
            key: context.key.clone(),
            audio: SpeechAudio {
                content_type: recording.content_type.clone(),
                bytes: recording.bytes.clone(),
            },
            language: Some(language.to_owned()).filter(|code| code != "auto"),
            timeout: Duration::from_millis(timeout_ms),
            retry: retry(&version.spec),
        };
        let call = speech.to_text.transcribe(&request);
        self.guarded(&speech.provider, context, call).await
    }

    pub(crate) async fn synthesize_speech(
        &self,
        version: &AgentVersion,
        text: &str,
        context: &CallContext,
    ) -> Result<Option<MediaContent>, CodeError> {
        let Some(speech) = self.resources.models.speech(version)? else {
            return Ok(None);
        };
        let spec = &version.spec;
        let request = SynthesisRequest {
            key: context.key.clone(),
            text: text.to_owned(),
            voice: spec.tts_voice.clone(),
            format: speech.format,
            timeout: Duration::from_millis(spec.timeouts.tts_ms),
            retry: retry(spec),
        };
        let call = speech.of_text.synthesize(&request);
        let made = self.guarded(&speech.provider, context, call).await?;
        Ok(Some(MediaContent {
            content_type: made.content_type,
            bytes: made.bytes,
        }))
    }
}

fn retry(spec: &AgentSpec) -> RetrySettings {
    RetrySettings {
        max_retries: spec.retry.max_retries,
        base_delay: Duration::from_millis(spec.retry.base_delay_ms),
        jitter: Duration::from_millis(spec.retry.jitter_ms),
        attempt_timeout: None,
    }
}
