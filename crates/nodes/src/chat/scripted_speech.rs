//! Speech without network, for tests and demonstrations: a recording is its text.

use super::failure::ProviderFailure;
use super::speech::{
    SpeechAudio, SpeechToText, SynthesisRequest, TextToSpeech, TranscriptionRequest,
};
use async_trait::async_trait;

#[derive(Clone, Debug, Default)]
pub struct ScriptedSpeech {
    /// What every recording says. `None`: its bytes are the text.
    pub transcript: Option<String>,
    /// Why every call fails, as in a script.
    pub fail: Option<String>,
}

impl ScriptedSpeech {
    fn check(&self) -> Result<(), ProviderFailure> {
        match &self.fail {
            Some(why) => Err(ProviderFailure::scripted(why)),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl SpeechToText for ScriptedSpeech {
    async fn transcribe(&self, request: &TranscriptionRequest) -> Result<String, ProviderFailure> {
        self.check()?;
        let spoken = || std::str::from_utf8(&request.audio.bytes).ok();
        let text = self.transcript.as_deref().or_else(spoken);
        let text = text.map(str::trim).filter(|text| !text.is_empty());
        let silent = || ProviderFailure::new("answer_empty", "The recording has no text.");
        text.map(str::to_owned).ok_or_else(silent)
    }
}

#[async_trait]
impl TextToSpeech for ScriptedSpeech {
    async fn synthesize(&self, request: &SynthesisRequest) -> Result<SpeechAudio, ProviderFailure> {
        self.check()?;
        Ok(SpeechAudio {
            content_type: request.format.content_type().to_owned(),
            bytes: request.text.clone().into_bytes(),
        })
    }
}
