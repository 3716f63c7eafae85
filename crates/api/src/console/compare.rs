//! Compares two runs, with the same comparison as the API.

use super::page::{PageError, chrome};
use super::session::SignedIn;
use super::shown_bytes::ShownBytes;
use crate::api::SharedState;
use crate::path_params::PathParams;
use crate::routes::ProjectedRun;
use axum::extract::State;
use axum::response::Html;
use serde_json::Value;
use tandem_access::Scope;
use tandem_console::{
    ComparePageView, ComparedRun, EventDifference, EventRow, ForkOrigin, StateDifference,
    compare_page,
};
use tandem_record::RunId;

/// Differing events shown on the page; the API lists more.
const SHOWN_EVENTS: usize = 100;

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams((a, b)): PathParams<(String, String)>,
) -> Result<Html<String>, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    // Both logs are in memory until they are compared.
    let _build = api.pages.begin_build(&reader.tenant).await?;
    let a = ProjectedRun::load(&api, &reader, &RunId::from(a)).await?;
    let b = ProjectedRun::load(&api, &reader, &RunId::from(b)).await?;
    let found = a.diff(&b);
    let listed = found["eventDiffs"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let mut shown = ShownBytes::page();
    let events = listed.iter().take(SHOWN_EVENTS);
    let view = ComparePageView {
        a: compared(&a.snapshot),
        b: compared(&b.snapshot),
        diverged_at: found["divergedAtSeq"].as_u64(),
        events: events.map(|found| event(found, &mut shown)).collect(),
        more_events: listed.len() > SHOWN_EVENTS,
        is_unfinished: !(a.ended && b.ended),
        state: state(&found["stateDiff"], &mut shown),
    };
    Ok(Html(compare_page(&chrome(&api, &reader), &view)))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn compared(snapshot: &Value) -> ComparedRun {
    let origin = snapshot.get("forkedFrom");
    ComparedRun {
        run_id: text(&snapshot["runId"]),
        workflow_id: text(&snapshot["workflowId"]),
        status: text(&snapshot["status"]),
        forked_from: origin.map(|fork| ForkOrigin {
            run_id: text(&fork["runId"]),
            from_seq: fork["fromSeq"].as_u64().unwrap_or_default(),
            mode: text(&fork["mode"]),
        }),
    }
}

fn event(difference: &Value, shown: &mut ShownBytes) -> EventDifference {
    let mut side = |name: &str| {
        difference.get(name).map(|event| EventRow {
            sequence: event["sequence"].as_u64().unwrap_or_default(),
            at: text(&event["timestamp"]),
            kind: text(&event["type"]),
            node_id: event["nodeId"].as_str().map(str::to_owned),
            payload_json: shown.pretty(&event["payload"]),
        })
    };
    EventDifference {
        seq: difference["seq"].as_u64().unwrap_or_default(),
        op: text(&difference["op"]),
        a: side("aEvent"),
        b: side("bEvent"),
    }
}

/// The status is one difference; variables and channels have one difference for each name.
fn state(found: &Value, shown: &mut ShownBytes) -> Vec<StateDifference> {
    let mut difference = |part: &str, name: Option<&str>, sides: &Value| StateDifference {
        part: part.to_owned(),
        name: name.map(str::to_owned),
        a: sides.get("a").map(|side| shown.pretty(side)),
        b: sides.get("b").map(|side| shown.pretty(side)),
    };
    let mut out = Vec::new();
    if let Some(sides) = found.get("status") {
        out.push(difference("status", None, sides));
    }
    for part in ["variables", "channels"] {
        let named = found.get(part).and_then(Value::as_object);
        for (name, sides) in named.into_iter().flatten() {
            out.push(difference(part, Some(name), sides));
        }
    }
    out
}
