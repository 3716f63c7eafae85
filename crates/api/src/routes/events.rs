//! `GET /v1/runs/{runId}/events`: the log as a stream, or as one JSON response.

use super::poll::respond_with_page;
use crate::api::SharedState;
use crate::caller::{Caller, RunsRead};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::sse::{self, EventRenderer, Frame};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tandem_app::{RunFold, StoredRun};
use tandem_record::{Event, RecordedEvent, RunId, Sensitivity, Seq};
use tandem_wire::project::{self, Reader, SnapshotExtras};
use tandem_wire::v1::stream::{MESSAGE, Modes};

const MAX_BUFFER_MS: u64 = 5_000;

#[utoipa::path(
    get, path = "/v1/runs/{runId}/events", tag = "events", operation_id = "streamEvents",
    params(("runId" = String, Path),
           ("streamMode" = Option<String>, Query, description = "updates, values, messages, debug, or a list"),
           ("bufferMs" = Option<u64>, Query, description = "0 to 5000: collect events into batches"),
           ("Last-Event-ID" = Option<String>, Header)),
    responses((status = 200, description = "The log, as a stream or, if JSON is accepted, at once",
               body = String, content_type = "text/event-stream"))
)]
pub(super) async fn stream_events(
    State(api): State<SharedState>,
    caller: Caller<RunsRead>,
    PathParams(run): PathParams<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = RunId::from(run);
    let stored = api.app.read_run(&caller, &run).await?;
    let modes = Modes::parse(params.get("streamMode").unwrap_or("updates"))
        .map_err(|_| Problem::unsupported_stream_mode())?;
    let buffer_ms = params.number("bufferMs", 0..=MAX_BUFFER_MS)?.unwrap_or(0);
    if prefers_json(&headers) {
        return respond_with_page(&api, &caller, &stored, None).await;
    }
    let guard = api.open_stream(&caller, &headers).await?;
    let window = (buffer_ms > 0).then(|| Duration::from_millis(buffer_ms));
    let cursor = last_event_id(&headers, &stored);
    if modes.is_values() {
        // A state needs all events, so the log is read from the start; states the reader already
        // has are not sent.
        let follower = api.app.follow_run(&stored, None, api.stopping.clone());
        let renderer = ValuesRenderer {
            run: api.app.run_fold(&stored).await?,
            after: cursor,
        };
        return Ok(sse::stream(guard, follower, renderer, window));
    }
    let follower = api.app.follow_run(&stored, cursor, api.stopping.clone());
    let renderer = EventsRenderer {
        run,
        modes,
        sensitivity: api.app.sensitivity(&stored).await?,
        batched: window.is_some(),
    };
    Ok(sse::stream(guard, follower, renderer, window))
}

/// JSON only if the client accepts it and does not accept a stream.
fn prefers_json(headers: &HeaderMap) -> bool {
    let accepts = |kind: &str| {
        headers
            .get_all(header::ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|list| list.to_ascii_lowercase().contains(kind))
    };
    accepts("application/json") && !accepts("text/event-stream")
}

/// The position to resume from: a sequence or an event id of this run. Anything else starts from
/// the beginning, as does a position beyond the end of the log.
fn last_event_id(headers: &HeaderMap, stored: &StoredRun) -> Option<Seq> {
    let text = headers.get("last-event-id")?.to_str().ok()?.trim();
    let prefix = format!("evt-{}-", stored.row.run_id);
    let number = text.strip_prefix(&prefix).unwrap_or(text);
    let seq = Seq(number.parse().ok()?);
    (seq <= stored.head).then_some(seq)
}

/// These events are not delayed by a batch, because a reader may have to act on them.
fn is_urgent(event: &Event) -> bool {
    event.is_terminal() || matches!(event, Event::NodeSuspended { .. })
}

struct EventsRenderer {
    run: RunId,
    modes: Modes,
    sensitivity: Arc<Sensitivity>,
    /// A batch contains whole events, so a chunk is not sent as a bare message.
    batched: bool,
}

impl EventRenderer for EventsRenderer {
    fn render(&mut self, recorded: &RecordedEvent) -> Option<Frame> {
        if !self.modes.shows(&recorded.event) {
            return None;
        }
        let reader = Reader::v1(&self.sensitivity);
        if !self.batched && self.modes.shows_as_message(&recorded.event) {
            return Some(Frame {
                seq: recorded.seq,
                name: MESSAGE,
                data: project::message(&self.run, recorded, reader),
                urgent: false,
            });
        }
        Some(Frame {
            seq: recorded.seq,
            name: project::event_type(&recorded.event, reader.major),
            data: project::event_text(&self.run, recorded, reader),
            urgent: is_urgent(&recorded.event),
        })
    }
}

struct ValuesRenderer {
    run: RunFold,
    /// The last event the reader has; a snapshot of that position is sent first.
    after: Option<Seq>,
}

impl ValuesRenderer {
    fn snapshot(&self) -> Value {
        let extras = SnapshotExtras {
            children: Vec::new(),
            outputs: self.run.0.outputs().cloned(),
            link: None,
        };
        let run = &self.run.0;
        project::snapshot(&run.view(), &extras, Reader::v1(&run.sensitivity()))
    }
}

impl EventRenderer for ValuesRenderer {
    fn state_bytes(&self) -> usize {
        self.run.0.size().memory
    }

    fn render(&mut self, recorded: &RecordedEvent) -> Option<Frame> {
        self.run.0.evolve(recorded);
        let seq = Some(recorded.seq);
        let shown =
            seq == self.after || (seq > self.after && Modes::values_trigger(&recorded.event));
        shown.then(|| Frame {
            seq: recorded.seq,
            name: "state.snapshot",
            data: self.snapshot().to_string(),
            urgent: is_urgent(&recorded.event),
        })
    }
}
