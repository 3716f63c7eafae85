//! Speech in and out.

use super::super::server::Server;
use super::*;
use crate::{
    HostedSpeech, ScriptedSpeech, SpeechAudio, SpeechFormat, SpeechLimits, SpeechSettings,
    SpeechToText, SynthesisRequest, TextToSpeech, TranscriptionRequest,
};

fn speech(url: &str) -> HostedSpeech {
    let settings = SpeechSettings {
        provider: "house".to_owned(),
        hosted: settings(ModelApi::Anthropic, url).hosted,
        transcription_model: "hear".to_owned(),
        synthesis_model: "say".to_owned(),
        limits: SpeechLimits {
            audio_bytes: 1_000,
            text_bytes: 200,
        },
    };
    HostedSpeech::new(settings, CallLimits::default()).unwrap()
}

fn recording(content_type: &str, bytes: &[u8]) -> TranscriptionRequest {
    TranscriptionRequest {
        key: "voice-1".into(),
        audio: SpeechAudio {
            content_type: content_type.to_owned(),
            bytes: bytes.to_vec(),
        },
        language: Some("de".to_owned()),
        timeout: Duration::from_secs(15),
        retry: ONE_RETRY,
    }
}

fn spoken(text: &str) -> SynthesisRequest {
    SynthesisRequest {
        key: "voice-2".into(),
        text: text.to_owned(),
        voice: "alloy".to_owned(),
        format: SpeechFormat::Opus,
        timeout: Duration::from_secs(15),
        retry: ONE_RETRY,
    }
}

fn audio(bytes: &str) -> CannedResponse {
    CannedResponse::new("200 OK", &["content-type: audio/ogg"], bytes)
}

/// Z-19 (half: the transcription), Z-42 (half: speech)
#[tokio::test]
async fn recording_is_sent_as_a_form_and_its_text_returned() {
    let server = Server::responding_with(ok(&json!({"text": " Guten Tag. "}))).await;
    let speech = speech(&format!("{}/v1", server.url));
    let request = recording("audio/mpeg; x=1", b"sound");
    assert_eq!(speech.transcribe(&request).await.unwrap(), "Guten Tag.");
    let sent = server.only_request().await;
    assert_eq!(sent.line, "POST /v1/audio/transcriptions HTTP/1.1");
    assert_eq!(sent.header("authorization"), [format!("Bearer {KEY}")]);
    assert_eq!(sent.header("idempotency-key"), ["voice-1"]);
    let kind = sent.header("content-type")[0].to_owned();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let field = |name: &str, value: &str| {
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        )
    };
    let file = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"audio.mp3\"\r\n\
         Content-Type: audio/mpeg; x=1\r\n\r\nsound\r\n--{boundary}--\r\n"
    );
    let expected = [
        field("model", "hear"),
        field("response_format", "json"),
        field("language", "de"),
        file,
    ];
    assert_eq!(sent.body, expected.concat());
}

#[tokio::test]
async fn type_and_language_cannot_add_headers_to_the_form() {
    let server = Server::responding_with(ok(&json!({"text": "hi"}))).await;
    let request = TranscriptionRequest {
        language: Some("de\r\nX: 1".to_owned()),
        ..recording("audio/ogg\r\nX: 1", b"sound")
    };
    speech(&server.url).transcribe(&request).await.unwrap();
    let body = server.only_request().await.body;
    assert!(!body.contains("X: 1"), "{body}");
    assert!(body.contains("Content-Type: application/octet-stream\r\n"));
}

/// Z-40 (half: the synthesis)
#[tokio::test]
async fn text_is_sent_and_its_recording_returned() {
    let server = Server::responding_with(audio("sound")).await;
    let recorded = speech(&server.url)
        .synthesize(&spoken("Hello."))
        .await
        .unwrap();
    assert_eq!(
        (recorded.content_type.as_str(), recorded.bytes.as_slice()),
        ("audio/ogg", &b"sound"[..])
    );
    let sent = server.only_request().await;
    assert_eq!(sent.line, "POST /audio/speech HTTP/1.1");
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    let expected =
        json!({"model": "say", "input": "Hello.", "voice": "alloy", "response_format": "opus"});
    assert_eq!(body, expected);
}

#[tokio::test]
async fn bad_answers_have_codes_and_transient_ones_are_retried() {
    let long = "x".repeat(2_000);
    let page = CannedResponse::new("200 OK", &["content-type: text/html"], KEY);
    let text = |text: &str| ok(&json!({ "text": text }));
    let code = |failure: ProviderFailure| {
        assert!(!format!("{failure:?}").contains(KEY));
        failure.error.code
    };
    for (response, expected, attempts) in [
        (text(" "), "answer_empty", 1),
        (text(&long), "answer_too_large", 1),
        (ok(&json!({"txt": "hi"})), "answer_invalid", 2),
        (page.clone(), "answer_invalid", 2),
        (
            CannedResponse::json("429 Slow", KEY),
            "provider_quota_exhausted",
            2,
        ),
        (
            CannedResponse::json("401 No", KEY),
            "provider_unavailable",
            1,
        ),
    ] {
        let server = Server::responding_with(response).await;
        let request = recording("audio/ogg", b"sound");
        let failure = speech(&server.url).transcribe(&request).await.unwrap_err();
        assert_eq!(code(failure), expected);
        assert_eq!(server.requests().await.len(), attempts, "{expected}");
    }
    for (response, expected, attempts) in [
        (audio(""), "answer_empty", 1),
        (audio(&long), "answer_too_large", 1),
        (page, "answer_invalid", 2),
        (
            CannedResponse::json("503 Busy", KEY),
            "provider_unavailable",
            2,
        ),
    ] {
        let server = Server::responding_with(response).await;
        let failure = speech(&server.url)
            .synthesize(&spoken("Hi"))
            .await
            .unwrap_err();
        assert_eq!(code(failure), expected);
        assert_eq!(server.requests().await.len(), attempts, "{expected}");
    }
}

#[tokio::test]
async fn too_much_is_not_sent() {
    let server = Server::responding_with(audio("sound")).await;
    let speech = speech(&server.url);
    let request = recording("audio/ogg", &[0; 1_001]);
    let failure = speech.transcribe(&request).await.unwrap_err();
    assert_eq!(failure.error.code, "content_too_long");
    let failure = speech
        .synthesize(&spoken(&"x".repeat(201)))
        .await
        .unwrap_err();
    assert_eq!(failure.error.code, "content_too_long");
    assert!(server.requests().await.is_empty());
}

#[tokio::test]
async fn scripted_speech_is_its_text_or_fails() {
    let plain = ScriptedSpeech::default();
    let recorded = plain.synthesize(&spoken("Hello.")).await.unwrap();
    let request = recording(&recorded.content_type, &recorded.bytes);
    assert_eq!(plain.transcribe(&request).await.unwrap(), "Hello.");
    let silent = plain.transcribe(&recording("audio/ogg", &[0xff])).await;
    assert_eq!(silent.unwrap_err().error.code, "answer_empty");

    let fixed = ScriptedSpeech {
        transcript: Some("Book a table.".to_owned()),
        ..ScriptedSpeech::default()
    };
    let heard = fixed.transcribe(&recording("audio/ogg", &[0xff])).await;
    assert_eq!(heard.unwrap(), "Book a table.");

    let broken = ScriptedSpeech {
        fail: Some("overloaded".to_owned()),
        ..ScriptedSpeech::default()
    };
    assert!(broken.transcribe(&request).await.unwrap_err().is_transient);
    assert!(broken.synthesize(&spoken("Hi")).await.is_err());
}
