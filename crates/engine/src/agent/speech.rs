//! Who understands and makes speech for an agent.

use crate::object_reader::ObjectReader;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentSpeech {
    /// Without network: a recording is its text.
    Scripted {
        /// What every recording says.
        transcript: Option<String>,
        /// Why every call fails.
        fail: Option<String>,
    },
    /// A provider of the host or an endpoint that speaks its protocol, which is that of OpenAI.
    Provider {
        provider: String,
        base_url: Option<String>,
        /// Name of the environment variable that holds the key.
        api_key_env: Option<String>,
        transcription_model: String,
        synthesis_model: String,
        format: SpeechEncoding,
    },
}

/// How speech is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpeechEncoding {
    #[default]
    Mp3,
    Opus,
    Wav,
}

const SCRIPTED: &str = "scripted";
const OF_SCRIPTED: [&str; 2] = ["transcript", "fail"];
const OF_PROVIDERS: [&str; 5] = [
    "baseUrl",
    "apiKeyEnv",
    "transcriptionModel",
    "synthesisModel",
    "format",
];
const FORMATS: [(&str, SpeechEncoding); 3] = [
    ("mp3", SpeechEncoding::Mp3),
    ("opus", SpeechEncoding::Opus),
    ("wav", SpeechEncoding::Wav),
];

/// Settings that say how speech is understood and made.
const OF_SPEECH: [&str; 3] = ["ttsVoice", "sttTimeoutMs", "ttsTimeoutMs"];

pub(super) fn speech(config: &ObjectReader<'_>) -> Option<AgentSpeech> {
    let Some(speech) = config.object("speech") else {
        let given = OF_SPEECH.iter().filter(|name| config.get(name).is_some());
        given.for_each(|name| config.report(name, "has no effect without `speech`"));
        return None;
    };
    let provider = speech.required_text("provider");
    let report = |names: &[&str], message: &str| {
        let given = names.iter().filter(|name| speech.get(name).is_some());
        given.for_each(|name| speech.report(name, message));
    };
    if provider == SCRIPTED {
        report(&OF_PROVIDERS, "the provider scripted has none");
        return Some(AgentSpeech::Scripted {
            transcript: speech.text("transcript"),
            fail: speech.text("fail"),
        });
    }
    report(&OF_SCRIPTED, "only the provider scripted has it");
    let model = |name: &str, default: &str| speech.text(name).unwrap_or_else(|| default.to_owned());
    Some(AgentSpeech::Provider {
        provider,
        base_url: speech.http_url("baseUrl"),
        api_key_env: speech.text("apiKeyEnv"),
        transcription_model: model("transcriptionModel", "whisper-1"),
        synthesis_model: model("synthesisModel", "tts-1"),
        format: speech.choice("format", &FORMATS).unwrap_or_default(),
    })
}
