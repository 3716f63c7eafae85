use crate::outgoing_trace;
use tandem_record::TraceContext;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn context(traceparent: &str) -> TraceContext {
    TraceContext {
        traceparent: traceparent.to_owned(),
        tracestate: Some("vendor=1".to_owned()),
    }
}

#[test]
fn outgoing_call_continues_the_trace_with_a_new_span() {
    for flags in ["00", "01"] {
        let span = "b7ad6b7169203331";
        let before = context(&format!("00-{TRACE}-{span}-{flags}"));
        let after = outgoing_trace(Some(&before));
        let parts: Vec<_> = after.traceparent.split('-').collect();
        assert_eq!((parts[0], parts[1], parts[3]), ("00", TRACE, flags));
        assert_eq!(parts[2].len(), 16);
        assert_ne!(parts[2], span);
        assert_eq!(after.tracestate, before.tracestate);
        assert_ne!(outgoing_trace(Some(&before)).traceparent, after.traceparent);
    }
}

#[test]
fn later_traceparent_version_with_more_fields_is_accepted() {
    let after = outgoing_trace(Some(&context(&format!(
        "42-{TRACE}-b7ad6b7169203331-01-more"
    ))));
    assert!(after.traceparent.starts_with(&format!("00-{TRACE}-")));
}

#[test]
fn unusable_context_starts_a_new_trace() {
    let malformed = [
        String::new(),
        "garbage".to_owned(),
        format!("00-{TRACE}-b7ad6b7169203331"),
        format!("00-{TRACE}-b7ad6b7169203331-01-more"),
        format!("ff-{TRACE}-b7ad6b7169203331-01"),
        format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
        format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
        format!("00-{TRACE}-0000000000000000-01"),
        format!("00-{TRACE}-b7ad6b716920333-01"),
    ];
    let contexts = malformed.iter().map(|text| Some(context(text)));
    for before in contexts.chain([None]) {
        let after = outgoing_trace(before.as_ref());
        assert_eq!(after.traceparent.len(), 55, "{before:?}");
        assert!(!after.traceparent.contains(TRACE), "{before:?}");
        assert_eq!(after.tracestate, None);
    }
}
