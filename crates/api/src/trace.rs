//! W3C trace context: a well-formed one is continued, otherwise a new one is started. It is used
//! for correlation only and never for access decisions.

use axum::http::{HeaderMap, HeaderValue};
use std::sync::Arc;
use tandem_record::TraceContext;
use uuid::Uuid;

/// Longer vendor lists are dropped, as the specification permits.
const MAX_TRACESTATE_BYTES: usize = 512;

/// The trace of a request, and the request's own span in it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Trace(Arc<Spans>);

#[derive(Debug)]
struct Spans {
    trace_id: String,
    /// The caller's span, if the caller sent one.
    parent: Option<String>,
    span_id: String,
    flags: String,
    state: Option<String>,
}

impl Trace {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let span_id = fresh_span();
        let spans = match header("traceparent").and_then(parse) {
            Some((trace_id, parent, flags)) => Spans {
                trace_id: trace_id.to_owned(),
                parent: Some(parent.to_owned()),
                span_id,
                flags: flags.to_owned(),
                state: header("tracestate")
                    .filter(|state| !state.is_empty() && state.len() <= MAX_TRACESTATE_BYTES)
                    .map(str::to_owned),
            },
            None => Spans {
                trace_id: Uuid::new_v4().simple().to_string(),
                parent: None,
                span_id,
                flags: "01".to_owned(),
                state: None,
            },
        };
        Self(Arc::new(spans))
    }

    pub(crate) fn trace_id(&self) -> &str {
        &self.0.trace_id
    }

    pub(crate) fn span_id(&self) -> &str {
        &self.0.span_id
    }

    /// The context that a run created by this request continues: the caller's span, else this
    /// request's.
    pub(crate) fn for_run(&self) -> TraceContext {
        let spans = &self.0;
        let parent = spans.parent.as_ref().unwrap_or(&spans.span_id);
        TraceContext {
            traceparent: spans.traceparent(parent),
            tracestate: spans.state.clone(),
        }
    }

    /// The `traceparent` header of the response.
    pub(crate) fn header(&self) -> HeaderValue {
        let text = self.0.traceparent(&self.0.span_id);
        HeaderValue::try_from(text).expect("hexadecimal digits and dashes are valid in a header")
    }
}

impl Spans {
    fn traceparent(&self, span: &str) -> String {
        ["00", &self.trace_id, span, &self.flags].join("-")
    }
}

fn fresh_span() -> String {
    // The high half holds random bits besides the version, so it is never all zero.
    let (high, _) = Uuid::new_v4().as_u64_pair();
    format!("{high:016x}")
}

/// Trace id, parent id and flags of a well-formed header. Versions after 00 may append fields.
fn parse(text: &str) -> Option<(&str, &str, &str)> {
    let mut fields = text.trim().split('-');
    let (version, trace_id, parent, flags) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    let extra = fields.next().is_some();
    let sound = is_hex(version, 2)
        && version != "ff"
        && (version != "00" || !extra)
        && is_hex(trace_id, 32)
        && is_hex(parent, 16)
        && is_hex(flags, 2)
        && trace_id.bytes().any(|b| b != b'0')
        && parent.bytes().any(|b| b != b'0');
    sound.then_some((trace_id, parent, flags))
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_traceparent_is_accepted() {
        let id = "0af7651916cd43dd8448eb211c80319c";
        let good = format!("00-{id}-b7ad6b7169203331-01");
        assert_eq!(parse(&good), Some((id, "b7ad6b7169203331", "01")));
        assert!(parse(&format!("cc-{id}-b7ad6b7169203331-01-what")).is_some());
        for bad in [
            String::new(),
            format!("ff-{id}-b7ad6b7169203331-01"),
            format!("00-{id}-b7ad6b7169203331-01-what"),
            format!("00-{id}-0000000000000000-01"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01".to_owned(),
            format!("00-{}-b7ad6b7169203331-01", id.to_uppercase()),
            format!("00-{id}-b7ad6b71-01"),
        ] {
            assert_eq!(parse(&bad), None, "{bad}");
        }
    }
}
