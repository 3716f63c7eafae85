//! Converts the projection's spans to those of the exporter.

use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tandem_record::Timestamp;
use tandem_wire::v1::spans::{Span, SpanStatus};

/// `None` for spans that have not ended or have invalid ids.
pub(super) fn span_data(span: Span) -> Option<SpanData> {
    let end_time = system_time(span.ended_at?);
    let parent_span_id = match &span.parent_span_id {
        Some(parent) => SpanId::from_hex(parent).ok()?,
        None => SpanId::INVALID,
    };
    let context = SpanContext::new(
        TraceId::from_hex(&span.trace_id).ok()?,
        SpanId::from_hex(&span.span_id).ok()?,
        TraceFlags::SAMPLED,
        false,
        TraceState::NONE,
    );
    if !context.is_valid() {
        return None;
    }
    Some(SpanData {
        span_context: context,
        parent_span_id,
        // Only the run's span can have a parent on another host.
        parent_span_is_remote: span.name == "openwop.run" && span.parent_span_id.is_some(),
        span_kind: match span.kind {
            "server" => SpanKind::Server,
            "client" => SpanKind::Client,
            "producer" => SpanKind::Producer,
            "consumer" => SpanKind::Consumer,
            _ => SpanKind::Internal,
        },
        start_time: system_time(span.started_at),
        end_time,
        attributes: span.attributes.into_iter().filter_map(attribute).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: match span.status {
            SpanStatus::Ok => Status::Ok,
            SpanStatus::Error => Status::error(span.message.unwrap_or_default()),
            SpanStatus::Unset => Status::Unset,
        },
        name: span.name.into(),
        instrumentation_scope: InstrumentationScope::builder("tandem")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    })
}

/// The sampled flag of a trace parent; an unreadable one counts as sampled.
pub(super) fn is_sampled(traceparent: &str) -> bool {
    let flags = traceparent.split('-').nth(3);
    let flags = flags.and_then(|hex| u8::from_str_radix(hex, 16).ok());
    flags.is_none_or(|flags| flags & 1 == 1)
}

/// Span attributes are scalars; other values are dropped.
fn attribute((name, value): (String, Value)) -> Option<KeyValue> {
    Some(match value {
        Value::String(text) => KeyValue::new(name, text),
        Value::Bool(flag) => KeyValue::new(name, flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => KeyValue::new(name, whole),
            None => KeyValue::new(name, number.as_f64()?),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    })
}

fn system_time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn span() -> Span {
        let attributes = json!({
            "openwop.run_id": "run-1", "openwop.node_attempt": 0, "openwop.cost.usd": 0.5,
            "nested": {"no": 1}
        });
        Span {
            trace_id: "0af7651916cd43dd8448eb211c80319c".to_owned(),
            span_id: "b7ad6b7169203331".to_owned(),
            parent_span_id: Some("00f067aa0ba902b7".to_owned()),
            name: "openwop.run".to_owned(),
            kind: "internal",
            started_at: Timestamp(1_000),
            ended_at: Some(Timestamp(2_500)),
            attributes: attributes.as_object().unwrap().clone(),
            status: SpanStatus::Error,
            message: Some("run_timeout".to_owned()),
        }
    }

    #[test]
    fn span_retains_ids_times_and_scalars() {
        let data = span_data(span()).unwrap();
        let context = &data.span_context;
        assert_eq!(
            context.trace_id().to_string(),
            "0af7651916cd43dd8448eb211c80319c"
        );
        assert_eq!(context.span_id().to_string(), "b7ad6b7169203331");
        assert_eq!(data.parent_span_id.to_string(), "00f067aa0ba902b7");
        assert!(data.parent_span_is_remote);
        let took = data.end_time.duration_since(data.start_time).unwrap();
        assert_eq!(took, Duration::from_millis(1_500));
        assert_eq!(data.status, Status::error("run_timeout"));
        let mut names: Vec<&str> = data.attributes.iter().map(|a| a.key.as_str()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["openwop.cost.usd", "openwop.node_attempt", "openwop.run_id"]
        );
    }

    #[test]
    fn an_open_span_is_not_exported() {
        let open = Span {
            ended_at: None,
            ..span()
        };
        assert_eq!(span_data(open), None);
    }

    #[test]
    fn sampled_flag_of_the_caller_is_honoured() {
        let parent =
            |flags: &str| format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}");
        assert!(is_sampled(&parent("01")));
        assert!(!is_sampled(&parent("00")));
        assert!(is_sampled("nonsense"));
    }
}
