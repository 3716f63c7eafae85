//! Request bodies: read up to a limit, then understood exactly.
//!
//! A body is closed: unknown fields, trailing text and wrong types are refused with the place
//! named, so that a caller's typo is never silently ignored.

use crate::problem::Problem;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};
use std::time::Duration;

/// How much of an oversized body is read and thrown away before the answer. A connection closed
/// with unread bytes is reset, and the caller would never see why.
const DRAINED_BYTES: usize = 32 * 1024 * 1024;
const DRAINED_FOR: Duration = Duration::from_secs(5);

/// The whole body, or a problem when it is larger than `limit` or breaks off.
pub(crate) async fn read(headers: &HeaderMap, body: Body, limit: usize) -> Result<Bytes, Problem> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        drain(body).await;
        return Err(Problem::payload_too_large(limit));
    }
    let mut body = body;
    let mut whole = BytesMut::with_capacity(declared.unwrap_or(0));
    while let Some(frame) = body.frame().await {
        let broken = |_| Problem::invalid("", "broke off before its end");
        let Ok(data) = frame.map_err(broken)?.into_data() else {
            continue;
        };
        if whole.len() + data.len() > limit {
            drain(body).await;
            return Err(Problem::payload_too_large(limit));
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

async fn drain(mut body: Body) {
    let reading = async {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > DRAINED_BYTES {
                break;
            }
        }
    };
    // A caller slower than this is cut off; it is sending what nobody wants.
    let _ = tokio::time::timeout(DRAINED_FOR, reading).await;
}

/// A required JSON body.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    if body.is_empty() {
        return Err(Problem::invalid("", "is missing; a JSON object is needed"));
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = pointer(error.path());
        Problem::invalid(&path, describe(error.inner()))
    })?;
    json.end()
        .map_err(|error| Problem::invalid("", describe(&error)))?;
    Ok(parsed)
}

/// A JSON body that may be left out.
pub(crate) fn parse_optional<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, Problem> {
    if body.is_empty() {
        return Ok(T::default());
    }
    parse(body)
}

fn pointer(path: &Path) -> String {
    let mut pointer = String::new();
    for segment in path.iter() {
        match segment {
            Segment::Seq { index } => {
                pointer.push('/');
                pointer.push_str(&index.to_string());
            }
            Segment::Map { key } | Segment::Enum { variant: key } => {
                pointer.push('/');
                pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Segment::Unknown => {}
        }
    }
    pointer
}

/// What serde says, without internal type names and as the rest of a sentence about the place.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(", expected struct ").next().unwrap_or(&text);
    format!("does not fit: {text}")
}
