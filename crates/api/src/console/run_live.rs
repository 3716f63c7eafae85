//! Live updates of a run page: each new event, then the resulting state, then the end.

use super::agents_view::AgentsCollector;
use super::page::PageError;
use super::people_view::AnsweredCollector;
use super::run_view;
use super::session::SignedIn;
use super::shown_bytes::ShownBytes;
use crate::api::SharedState;
use crate::params::Params;
use crate::path_params::PathParams;
use crate::sse::{self, EventRenderer, Frame, write_frame};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_app::{Definition, RunFold};
use tandem_console::{event_json, state_json};
use tandem_record::{RecordedEvent, RunId, Seq};
use tandem_wire::project::SnapshotExtras;

pub(super) async fn live(
    State(api): State<SharedState>,
    reader: SignedIn,
    PathParams(run): PathParams<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, PageError> {
    reader.require_scope(Scope::RunsRead)?;
    let stored = api.app.read_run(&reader, &RunId::from(run)).await?;
    // When a browser reconnects it sends the last id, which is newer than the cursor in the URL.
    let resumed = headers.get("last-event-id").and_then(|v| v.to_str().ok());
    let last_seq = resumed.or(params.get("after"));
    let follower = api.app.follow_run(&stored, None, api.stopping.clone());
    let renderer = RunPageRenderer {
        run: api.app.run_fold(&stored).await?,
        definition: api.app.pinned_definition(&stored).await?,
        after: last_seq.and_then(|text| text.parse().ok()).map(Seq),
        agents: AgentsCollector::new(api.app.agent_policy().confidence_floor()),
        newest: None,
        people: AnsweredCollector::default(),
        csrf: reader.csrf(),
        reader: Identity::clone(&reader),
    };
    let guard = api.open_session_stream(reader.session())?;
    Ok(sse::stream(guard, follower, renderer, None))
}

struct RunPageRenderer {
    run: RunFold,
    definition: Arc<Definition>,
    after: Option<Seq>,
    agents: AgentsCollector,
    /// The last event that was sent without its state.
    newest: Option<Seq>,
    people: AnsweredCollector,
    reader: Identity,
    csrf: String,
}

impl EventRenderer for RunPageRenderer {
    fn state_bytes(&self) -> usize {
        self.run.0.size().memory
    }

    fn render(&mut self, recorded: &RecordedEvent) -> Option<Frame> {
        self.run.0.evolve(recorded);
        self.agents.apply(recorded, &self.run.0.sensitivity());
        self.people.apply(recorded);
        if Some(recorded.seq) <= self.after {
            return None;
        }
        self.newest = Some(recorded.seq);
        let run = &self.run.0;
        let mut shown = ShownBytes::page();
        let row = run_view::event(run.id(), recorded, &run.sensitivity(), &mut shown);
        Some(Frame {
            seq: recorded.seq,
            name: "event",
            data: event_json(&row),
            urgent: false,
        })
    }

    fn render_page_end(&mut self) -> Option<Frame> {
        let newest = self.newest.take()?;
        let (view, extras) = (self.run.0.view(), SnapshotExtras::default());
        let sensitivity = self.run.0.sensitivity();
        let rules = (&*self.definition, &*sensitivity);
        let (csrf, mut shown) = (self.csrf.clone(), ShownBytes::page());
        let mut state = run_view::state(&view, rules, &extras, &self.reader, csrf, &mut shown);
        state.agents = self.agents.view(&mut shown);
        state.answered = self.people.view(&mut shown);
        Some(Frame {
            seq: newest,
            name: "state",
            data: state_json(&state),
            urgent: false,
        })
    }

    fn render_end(&mut self) -> Option<String> {
        let mut out = String::new();
        // Browsers ignore a message without data.
        write_frame(&mut out, None, "end", "{}");
        Some(out)
    }
}
