//! Speech of agents: who understands and makes it.

use super::fixtures::*;
use super::tools::server;
use serde_json::json;
use tandem_record::conversation::CodeError;
use tandem_runtime::conversation::{AgentHost, MediaContent};

fn recording(text: &str) -> MediaContent {
    MediaContent {
        content_type: "audio/ogg".to_owned(),
        bytes: text.as_bytes().to_vec(),
    }
}

async fn transcribe(
    desk: &Desk,
    recording: &MediaContent,
    timeout_ms: u64,
) -> Result<String, CodeError> {
    let context = context();
    let heard = desk.agents.transcribe(recording, timeout_ms, &context);
    heard.await
}

/// Z-42 (half: speech in both directions, scripted)
#[tokio::test]
async fn scripted_speech_is_its_text() {
    let desk = demo("speech: { provider: 'scripted' },");
    let heard = transcribe(&desk, &recording("a chair"), 1_000).await;
    assert_eq!(heard, Ok("a chair".to_owned()));
    let spoken = desk.agents.synthesize("two chairs", &context()).await;
    let spoken = spoken.expect("speech").expect("speech");
    assert_eq!(spoken.bytes, b"two chairs");
    assert!(spoken.is_audio());
}

#[tokio::test]
async fn agent_without_speech_neither_hears_nor_speaks() {
    let desk = demo("");
    let heard = transcribe(&desk, &recording("x"), 1_000).await;
    assert_eq!(heard.expect_err("nobody hears").code, "not_found");
    assert_eq!(desk.agents.synthesize("x", &context()).await, Ok(None));
}

/// Z-42 (half: speech over an endpoint like that of OpenAI, within its timeout)
#[tokio::test]
async fn endpoint_of_the_agent_is_called_with_its_key() {
    let endpoint = server(|_| Some((200, json!({"text": "a chair"}).to_string()))).await;
    let speech = |url: &str| {
        format!(
            "ttsVoice: 'nova', maxIdempotentRetries: 0, speech: {{ provider: 'openai-compatible', baseUrl: '{url}/v1',
               apiKeyEnv: 'CLINIC_KEY', transcriptionModel: 'ears' }},"
        )
    };
    let desk = demo(&speech(&endpoint.url));
    let heard = transcribe(&desk, &recording("noise"), 5_000).await;
    assert_eq!(heard, Ok("a chair".to_owned()));
    // A JSON answer is not speech.
    assert!(
        desk.agents
            .synthesize("two chairs", &context())
            .await
            .is_err()
    );
    let requests = endpoint.requests.lock().clone();
    assert!(requests[0].0.starts_with("post /v1/audio/transcriptions"));
    assert!(
        requests[0]
            .0
            .contains("authorization: bearer agents-own-key")
    );
    assert!(requests[1].0.starts_with("post /v1/audio/speech"));
    assert_eq!(requests[1].1["voice"], "nova");

    let silent = server(|_| None).await;
    let desk = demo(&speech(&silent.url));
    let heard = transcribe(&desk, &recording("noise"), 50).await;
    assert_eq!(heard.expect_err("too slow").code, "timeout");
}

#[test]
fn settings_of_another_provider_are_refused() {
    for (speech, problem) in [
        (
            "{ provider: 'scripted', baseUrl: 'https://x.example' }",
            "/speech/baseUrl",
        ),
        (
            "{ provider: 'openai', transcript: 'x' }",
            "/speech/transcript",
        ),
        ("{ provider: 'openai', format: 'flac' }", "/speech/format"),
        ("{}", "/speech/provider"),
        ("{ provider: 'openai', voice: 'x' }", "/speech/voice"),
    ] {
        let desk = demo(&format!("speech: {speech},"));
        let errors = desk.error_texts();
        assert!(
            errors.iter().any(|e| e.contains(problem)),
            "{speech}: {errors:?}"
        );
    }
}
