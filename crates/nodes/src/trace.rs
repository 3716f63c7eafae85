//! W3C trace context of outgoing calls: the run's trace continues with a new span.

use tandem_record::TraceContext;

/// The context of an outgoing call: the same trace id with a new span id. Without a usable context
/// a new, unsampled trace starts; a `tracestate` belongs to its own trace and is dropped then.
pub fn outgoing_trace(trace: Option<&TraceContext>) -> TraceContext {
    let span = format!("{:016x}", nonzero(rand::random::<u64>));
    match trace.and_then(|trace| Some((trace, parse(&trace.traceparent)?))) {
        Some((trace, (trace_id, flags))) => TraceContext {
            traceparent: format!("00-{trace_id}-{span}-{flags}"),
            tracestate: trace.tracestate.clone(),
        },
        None => TraceContext {
            traceparent: format!("00-{:032x}-{span}-00", nonzero(rand::random::<u128>)),
            tracestate: None,
        },
    }
}

/// Trace id and flags of a `traceparent`. A later version may append fields, which are ignored.
fn parse(traceparent: &str) -> Option<(&str, &str)> {
    let mut parts = traceparent.split('-');
    let (version, trace_id, parent, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let well_formed = is_hex(version, 2)
        && version != "ff"
        && (version != "00" || parts.next().is_none())
        && is_hex(trace_id, 32)
        && is_hex(parent, 16)
        && is_hex(flags, 2)
        && [trace_id, parent]
            .iter()
            .all(|id| id.bytes().any(|digit| digit != b'0'));
    well_formed.then_some((trace_id, flags))
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// All zeroes mean "no id" in a trace context.
fn nonzero<T: Default + PartialEq>(random: impl Fn() -> T) -> T {
    loop {
        let id = random();
        if id != T::default() {
            return id;
        }
    }
}
