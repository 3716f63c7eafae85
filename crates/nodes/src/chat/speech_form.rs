//! The form with which a recording is sent (`multipart/form-data`).

use super::speech::SpeechAudio;

pub(super) struct SpeechForm {
    pub(super) content_type: String,
    pub(super) body: Vec<u8>,
}

/// Types and languages come from transports and agents. Ones that do not fit in a form's header are
/// not sent.
pub(super) fn encode(audio: &SpeechAudio, model: &str, language: Option<&str>) -> SpeechForm {
    // Random, so that no recording can contain it.
    let boundary = format!("tandem-{:032x}", rand::random::<u128>());
    let kind = audio.content_type.as_str();
    let kind = Some(kind).filter(|kind| is_content_type(kind));
    let kind = kind.unwrap_or("application/octet-stream");
    let mut body = Vec::with_capacity(audio.bytes.len() + 1024);
    let mut field = |name: &str, value: &str| {
        let head =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(value.as_bytes());
        body.extend_from_slice(b"\r\n");
    };
    field("model", model);
    field("response_format", "json");
    let is_code = |code: &&str| code.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if let Some(language) = language.filter(is_code) {
        field("language", language);
    }
    // Providers read the format from the file's name.
    let name = extension(kind);
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; \
         filename=\"audio.{name}\"\r\nContent-Type: {kind}\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(&audio.bytes);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    SpeechForm {
        content_type: format!("multipart/form-data; boundary={boundary}"),
        body,
    }
}

fn is_content_type(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"/+.-;= ".contains(&b);
    text.contains('/') && text.bytes().all(fits)
}

fn extension(content_type: &str) -> &'static str {
    match content_type.split(';').next().unwrap_or_default().trim() {
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/webm" => "webm",
        "audio/mp4" | "audio/m4a" | "audio/x-m4a" => "m4a",
        "audio/flac" | "audio/x-flac" => "flac",
        _ => "ogg",
    }
}
