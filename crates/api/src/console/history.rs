//! History pages: a run as it was after one of its events. Each request folds the log once.

use super::page::{PageError, chrome};
use super::run_view;
use super::session::SignedIn;
use crate::api::{ApiState, SharedState};
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::routes::title;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Redirect, Response};
use tandem_access::Scope;
use tandem_app::{PageLimit, StoredRun};
use tandem_console::{
    EventRow, ForkOffer, HistoryPageView, MemoryEntryRow, MemoryPanelView, OpenQuestion,
    ReachedNode, history_fragment, history_page,
};
use tandem_record::{InterruptView, MemoryEntry, NodeStatus, NodeView, RunId, Sensitivity, Seq};
use tandem_wire::project::{self, Reader, SnapshotExtras};
use tandem_wire::v1::time::rfc3339;

/// Events shown on either side of the chosen one.
const EVENTS_AROUND: u64 = 7;
const AROUND_BYTES: usize = 8 * 1024 * 1024;
const SHOWN_NODES: usize = 200;
const SHOWN_ENTRIES: usize = 100;

/// Redirects to the chosen event, or to the newest. The slider posts here when scripts are off.
pub(super) async fn redirect_to_event(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(run): PathParams<String>,
    params: Params,
) -> Result<Redirect, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let run = RunId::from(run);
    let stored = api.app.read_run(&reader, &run).await?;
    let chosen = params.number("seq", 0..=u64::MAX)?;
    let seq = chosen.unwrap_or(stored.head.0);
    Ok(Redirect::to(&format!("/console/runs/{run}/at/{seq}")))
}

pub(super) async fn show(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams((run, seq)): PathParams<(String, String)>,
    params: Params,
) -> Result<Response, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let stored = api.app.read_run(&reader, &RunId::from(run)).await?;
    let seq = seq.parse().map(Seq);
    let seq = seq.map_err(|_| Problem::invalid("seq", "must be a whole number of at least 0"))?;
    let view = load_history_page(&api, &reader, &stored, seq).await?;
    let html = if params.get("fragment").is_some() {
        history_fragment(&view)
    } else {
        history_page(&chrome(&api, &reader), &view)
    };
    Ok(Html(html).into_response())
}

async fn load_history_page(
    api: &ApiState,
    reader: &SignedIn,
    stored: &StoredRun,
    seq: Seq,
) -> Result<HistoryPageView, Problem> {
    let observed = api.app.observe_run_at(stored, seq).await?;
    let (view, sensitivity) = (&observed.view, &*observed.sensitivity);
    let rules = (&*observed.definition, sensitivity);
    let extras = SnapshotExtras::default();
    let snapshot = project::snapshot(view, &extras, Reader::v1(sensitivity));
    let channels = snapshot.get("channels").map(run_view::pretty);
    let reached = view
        .nodes
        .iter()
        .filter(|n| n.status != NodeStatus::Pending);
    let nodes: Vec<ReachedNode> = reached.map(|n| node(n, sensitivity)).collect();
    let offer = ForkOffer {
        // A fork keeps the shown events. The newest event is the last one a fork can start at.
        from_seq: seq.next().min(stored.head).0,
        csrf: reader.csrf(),
    };
    Ok(HistoryPageView {
        state: run_view::state(view, rules, &extras, reader, reader.csrf()),
        seq: seq.0,
        last: stored.head.0,
        around: around(api, stored, seq, sensitivity).await?,
        channels_json: channels,
        nodes_omitted: nodes.len().saturating_sub(SHOWN_NODES) as u64,
        nodes: nodes.into_iter().take(SHOWN_NODES).collect(),
        questions: view.interrupts.iter().map(question).collect(),
        memory: memory(api, stored, seq).await?,
        fork: reader
            .require_scope(Scope::RunsCreate)
            .is_ok()
            .then_some(offer),
    })
}

async fn around(
    api: &ApiState,
    stored: &StoredRun,
    seq: Seq,
    sensitivity: &Sensitivity,
) -> Result<Vec<EventRow>, Problem> {
    let run = &stored.row.run_id;
    let first = seq.0.saturating_sub(EVENTS_AROUND);
    let count = usize::try_from(seq.0 - first + 1 + EVENTS_AROUND).unwrap_or(1);
    let after = first.checked_sub(1).map(Seq);
    let limit = PageLimit {
        events: count,
        bytes: AROUND_BYTES,
    };
    let events = api.app.read_events(stored, after, limit).await?;
    let events = events.iter().filter(|e| e.seq <= stored.head);
    Ok(events
        .map(|e| run_view::event(run, e, sensitivity))
        .collect())
}

async fn memory(api: &ApiState, stored: &StoredRun, seq: Seq) -> Result<MemoryPanelView, Problem> {
    let Some(memory) = api.app.read_memory_after(stored, seq).await? else {
        return Ok(MemoryPanelView {
            lost: true,
            ..MemoryPanelView::default()
        });
    };
    Ok(MemoryPanelView {
        omitted: memory.entries.len().saturating_sub(SHOWN_ENTRIES) as u64,
        entries: memory
            .entries
            .iter()
            .take(SHOWN_ENTRIES)
            .map(entry)
            .collect(),
        lost: false,
    })
}

fn entry(entry: &MemoryEntry) -> MemoryEntryRow {
    MemoryEntryRow {
        key: entry.key.clone(),
        memory_ref: entry.memory_ref.clone(),
        value_json: run_view::pretty(&entry.visible_value()),
        tags: entry.tags.clone(),
        written_at: rfc3339(entry.written_at),
        expires_at: entry.expires_at.map(rfc3339),
    }
}

fn node(node: &NodeView, sensitivity: &Sensitivity) -> ReachedNode {
    let error = node.error.as_ref();
    let error = error.map(|error| sensitivity.visible_error(Some(&node.node), error));
    ReachedNode {
        id: node.node.to_string(),
        state: run_view::node_state(node.status),
        attempt: node.attempt,
        error: error.map(|e| (e.code.clone(), e.message.clone())),
    }
}

fn question(open: &InterruptView) -> OpenQuestion {
    let interrupt = &open.interrupt;
    OpenQuestion {
        node_id: open.node.to_string(),
        kind: interrupt.kind.clone(),
        title: title(&interrupt.kind, &interrupt.data),
        interrupt_id: open.mirrors.is_none().then(|| interrupt.id.to_string()),
    }
}
