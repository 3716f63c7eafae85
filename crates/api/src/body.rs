//! Request bodies: read up to a limit, then parsed strictly.
//!
//! A body is closed: unknown fields, trailing text and wrong types are refused with their position,
//! so that a typo is never silently ignored.

use crate::api::HttpSettings;
use crate::problem::Problem;
use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer as _, MapAccess, Visitor};
use serde_path_to_error::{Path, Segment};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;
use tandem_record::{MAX_NESTING, nests_deeper};

/// How much of an oversized body is read and discarded before the response. A connection closed
/// with unread bytes is reset, and the caller would not see the response.
const MAX_DRAIN_BYTES: usize = 32 * 1024 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Allocated before the first byte of a body arrives.
const FIRST_ALLOCATION_BYTES: usize = 16 * 1024;

/// The whole body, or a problem when it is too large, too slow or breaks off.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    settings: &HttpSettings,
) -> Result<Bytes, Problem> {
    let limit = settings.max_body_bytes;
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse::<usize>().ok());
    if declared.is_some_and(|length| length > limit) {
        // With `Expect: 100-continue` the client has not sent the body yet.
        if !headers.contains_key(header::EXPECT) {
            drain(body).await;
        }
        return Err(Problem::payload_too_large(limit));
    }
    let reading = collect(body, declared.unwrap_or(0), limit);
    tokio::time::timeout(settings.body_timeout, reading)
        .await
        .map_err(|_| Problem::invalid("", "did not arrive in time"))?
}

async fn collect(mut body: Body, expected: usize, limit: usize) -> Result<Bytes, Problem> {
    // A declared length is only a claim: memory grows with what arrives.
    let mut whole = BytesMut::with_capacity(expected.min(FIRST_ALLOCATION_BYTES));
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
            if read > MAX_DRAIN_BYTES {
                break;
            }
        }
    };
    // A slower caller is cut off; its body is discarded anyway.
    let _ = tokio::time::timeout(DRAIN_TIMEOUT, reading).await;
}

/// A required JSON body: one object, nested no deeper than can be stored.
pub(crate) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    if body.is_empty() {
        return Err(Problem::invalid("", "is missing; a JSON object is needed"));
    }
    if nests_deeper(body, MAX_NESTING) {
        let message = format!("nests deeper than {MAX_NESTING} levels of arrays and objects");
        return Err(Problem::invalid("", message));
    }
    // Tracking the path costs as much as parsing, so it is done only after an error.
    if let Ok(ObjectOnly(parsed)) = serde_json::from_slice(body) {
        return Ok(parsed);
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let ObjectOnly(parsed) = serde_path_to_error::deserialize(&mut json).map_err(|error| {
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

/// Accepts only an object. By default serde also fills a struct from an array, member by member in
/// declaration order.
pub(crate) struct ObjectOnly<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectOnly<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}

/// For an optional member: if it is present it must have its type, and `null` is refused.
pub(crate) fn present<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(from).map(Some)
}

/// The same for an enum. By default serde also accepts `{"word": null}` for a unit variant.
pub(crate) fn present_enum<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let text = String::deserialize(from)?;
    T::deserialize(text.into_deserializer()).map(Some)
}

/// The same for a member that is a closed object itself.
pub(crate) fn present_object<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    ObjectOnly::deserialize(from).map(|ObjectOnly(object)| Some(object))
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

/// serde's error message without internal type names, as the rest of a sentence about the path.
fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(", expected struct ").next().unwrap_or(&text);
    format!("does not fit: {text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn declared_length_reserves_no_memory() {
        let limit = 1024 * 1024;
        let body = collect(Body::from("x"), limit, limit).await;
        let body = body.unwrap_or_else(|_| panic!("it is complete"));
        let reserved = body.try_into_mut().expect("no other reference").capacity();
        assert!(reserved <= FIRST_ALLOCATION_BYTES, "{reserved} bytes");
    }
}
