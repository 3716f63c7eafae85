//! History pages: a run as it was after one of its events. Each request folds the log once.

use super::page::{PageError, chrome};
use super::run_view;
use super::session::SignedIn;
use super::shown_bytes::{ShownBytes, line};
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
    // The run is folded again, and its values are copied.
    let _build = api.pages.begin_build(&reader.tenant).await?;
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
    let reached = view
        .nodes
        .iter()
        .filter(|n| n.status != NodeStatus::Pending);
    let reached: Vec<&NodeView> = reached.collect();
    // What is listed first gets the room of the page first.
    let mut shown = ShownBytes::page();
    let around = around(api, stored, seq, sensitivity, &mut shown).await?;
    let state = run_view::state(view, rules, &extras, reader, reader.csrf(), &mut shown);
    let channels = snapshot.get("channels");
    let channels_json = channels.map(|channels| shown.pretty(channels));
    let nodes = reached.iter().take(SHOWN_NODES);
    let nodes = nodes.map(|n| node(n, sensitivity, &mut shown)).collect();
    let offer = ForkOffer {
        // A fork keeps the shown events. The newest event is the last one a fork can start at.
        from_seq: seq.next().min(stored.head).0,
        csrf: reader.csrf(),
    };
    Ok(HistoryPageView {
        state,
        seq: seq.0,
        last: stored.head.0,
        around,
        channels_json,
        nodes_omitted: reached.len().saturating_sub(SHOWN_NODES) as u64,
        nodes,
        questions: view.interrupts.iter().map(question).collect(),
        memory: memory(api, stored, seq, &mut shown).await?,
        fork: reader
            .require_scope(Scope::RunsCreate)
            .is_ok()
            .then_some(offer),
    })
}

/// The chosen event with its payload, and those on either side without theirs.
async fn around(
    api: &ApiState,
    stored: &StoredRun,
    seq: Seq,
    sensitivity: &Sensitivity,
    shown: &mut ShownBytes,
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
        .map(|e| match e.seq == seq {
            true => run_view::event(run, e, sensitivity, shown),
            false => run_view::event_head(e),
        })
        .collect())
}

async fn memory(
    api: &ApiState,
    stored: &StoredRun,
    seq: Seq,
    shown: &mut ShownBytes,
) -> Result<MemoryPanelView, Problem> {
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
            .map(|found| entry(found, shown))
            .collect(),
        lost: false,
    })
}

fn entry(entry: &MemoryEntry, shown: &mut ShownBytes) -> MemoryEntryRow {
    MemoryEntryRow {
        key: entry.key.clone(),
        memory_ref: entry.memory_ref.clone(),
        value_json: shown.pretty(&entry.visible_value()),
        tags: entry.tags.clone(),
        written_at: rfc3339(entry.written_at),
        expires_at: entry.expires_at.map(rfc3339),
    }
}

fn node(node: &NodeView, sensitivity: &Sensitivity, shown: &mut ShownBytes) -> ReachedNode {
    let error = node.error.as_ref();
    let error = error.map(|error| sensitivity.visible_error(Some(&node.node), error));
    ReachedNode {
        id: node.node.to_string(),
        state: run_view::node_state(node.status),
        attempt: node.attempt,
        error: error.map(|e| (e.code.clone(), shown.text(&e.message))),
    }
}

fn question(open: &InterruptView) -> OpenQuestion {
    let interrupt = &open.interrupt;
    OpenQuestion {
        node_id: open.node.to_string(),
        kind: interrupt.kind.clone(),
        title: line(&title(&interrupt.kind, &interrupt.data)),
        interrupt_id: open.mirrors.is_none().then(|| interrupt.id.to_string()),
    }
}
