//! A run's page kept up to date: each new event, then the state they led to, then the end.

use super::crew_view::Crew;
use super::page::Detour;
use super::people_view::People;
use super::run_view;
use super::session::SignedIn;
use crate::api::Shared;
use crate::at::At;
use crate::follow::Follower;
use crate::params::Params;
use crate::sse::{self, Frame, Show, write_frame};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use std::sync::Arc;
use tandem_access::{Identity, Scope};
use tandem_console::{event_json, state_json};
use tandem_record::{Recorded, RunId, Seq};
use tandem_runtime::{Definition, Unfolded};
use tandem_wire::v1::project::SnapshotExtras;

pub(super) async fn live(
    State(doors): State<Shared>,
    reader: SignedIn,
    At(run): At<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Detour> {
    reader.may(Scope::RunsRead)?;
    let stored = doors.visible(&reader, &RunId::from(run)).await?;
    // A browser that reconnects by itself sends the id; the page's own cursor is older then.
    let resumed = headers.get("last-event-id").and_then(|v| v.to_str().ok());
    let seen = resumed.or(params.get("after"));
    let follower = Follower::new(&doors, &stored, None);
    let show = Page {
        run: doors.runtime.unfolded(&stored).await?,
        definition: doors.runtime.pinned(&stored).await?,
        after: seen.and_then(|text| text.parse().ok()).map(Seq),
        crew: Crew::new(doors.runtime.agent_policy().floor()),
        newest: None,
        people: People::default(),
        csrf: reader.csrf(),
        reader: Identity::clone(&reader),
    };
    let guard = doors.open_session_stream(reader.session())?;
    Ok(sse::stream(guard, follower, show, None))
}

struct Page {
    run: Unfolded,
    definition: Arc<Definition>,
    after: Option<Seq>,
    crew: Crew,
    /// The last event shown whose state was not.
    newest: Option<Seq>,
    people: People,
    reader: Identity,
    csrf: String,
}

impl Show for Page {
    fn show(&mut self, recorded: &Recorded) -> Option<Frame> {
        self.run.0.evolve(recorded);
        self.crew.take(recorded);
        self.people.take(recorded);
        if Some(recorded.seq) <= self.after {
            return None;
        }
        self.newest = Some(recorded.seq);
        let run = &self.run.0;
        let row = run_view::event(run.id(), recorded, &run.sensitivity());
        Some(Frame {
            seq: recorded.seq,
            name: "event".to_owned(),
            data: event_json(&row),
            urgent: false,
        })
    }

    fn page_shown(&mut self) -> Option<Frame> {
        let newest = self.newest.take()?;
        let (view, extras) = (self.run.0.view(), SnapshotExtras::default());
        let sensitivity = self.run.0.sensitivity();
        let rules = (&*self.definition, &*sensitivity);
        let csrf = self.csrf.clone();
        let mut state = run_view::state(&view, rules, &extras, &self.reader, csrf);
        state.crew = self.crew.view();
        state.answered = self.people.view();
        Some(Frame {
            seq: newest,
            name: "state".to_owned(),
            data: state_json(&state),
            urgent: false,
        })
    }

    fn farewell(&mut self) -> Option<String> {
        let mut out = String::new();
        // Without data a browser would not hand the message to the page.
        write_frame(&mut out, None, "end", "{}");
        Some(out)
    }
}
