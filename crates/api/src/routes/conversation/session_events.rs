//! `GET /sessions/{sessionId}/events`: the log of a session as one JSON answer or as a stream. A stream also
//! carries pieces of answers while a model writes them; what is sent in the end is an event.

use super::agents::after;
use crate::api::SharedState;
use crate::caller::{Caller, OfConversations, RunsRead};
use crate::page_budget::counted;
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::sse::{self, KEEP_ALIVE_FRAME, next_keep_alive, write_frame};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde_json::{Value, json};
use tandem_app::conversation::{SessionFollower, SessionUpdate};
use tandem_record::conversation::SessionStart;
use tandem_record::{Masking, Seq, SessionId};
use tandem_wire::conversation::{self as wire, EventReader};

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}/events", tag = "conversations",
    operation_id = "readSessionEvents",
    params(("sessionId" = String, Path),
           ("after" = Option<i64>, Query, description = "The last sequence already seen; -1 for all"),
           ("Last-Event-ID" = Option<String>, Header)),
    responses((status = 200, description = "Events after the sequence, as JSON or, if a stream is accepted, as they arrive", body = Value))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams(session): PathParams<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    params.only(&["after"])?;
    let session = SessionId::from(session);
    let after = after(&params)?.map(Seq);
    if accepts_stream(&headers) {
        let guard = api.open_stream(&caller, &headers).await?;
        let after = last_event_id(&headers).or(after);
        let stopping = api.stopping.clone();
        let followed = api.app.follow_session(&caller, &session, after, stopping);
        let (start, follower) = followed.await?;
        let events = SessionStream {
            texts: api.app.text_masking(&start.agent_id),
            start,
            follower,
            has_ended: false,
        };
        let frames = stream::unfold(events, |mut events| async move {
            let frame = events.next().await?;
            Some((frame, events))
        });
        return Ok(sse::response(guard, frames));
    }
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let read = api.app.read_session_events(&caller, &session, after);
    let (start, page) = read.await?;
    let reader = EventReader {
        session: &start,
        texts: api.app.text_masking(&start.agent_id),
    };
    let events = page.events.iter();
    let events: Vec<Value> = events
        .map(|event| wire::event(event, reader, None))
        .collect();
    let last = page.events.last().map(|event| event.seq);
    let mut body = json!({"events": events});
    if last.is_some() && last < page.head {
        body["nextCursor"] = json!(last);
    }
    Ok(Json(body).into_response())
}

fn accepts_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.any(|kinds| kinds.to_ascii_lowercase().contains("text/event-stream"))
}

fn last_event_id(headers: &HeaderMap) -> Option<Seq> {
    let text = headers.get("last-event-id")?.to_str().ok()?;
    text.trim().parse().ok().map(Seq)
}

struct SessionStream {
    start: SessionStart,
    texts: Masking,
    follower: SessionFollower,
    has_ended: bool,
}

impl SessionStream {
    async fn next(&mut self) -> Option<Bytes> {
        if self.has_ended {
            return None;
        }
        let mut out = String::new();
        match self.follower.next(next_keep_alive()).await {
            Ok(SessionUpdate::Events(events, page_room)) => {
                let reader = EventReader {
                    session: &self.start,
                    texts: self.texts,
                };
                for event in &events {
                    let name = wire::event_name(&event.event.body);
                    let data = wire::event_text(event, reader, None);
                    write_frame(&mut out, Some(event.seq), name, &data);
                }
                // Until they are written, the events count.
                let out = Bytes::from(out);
                return Some(match &page_room {
                    Some(room) => counted(out, room),
                    None => out,
                });
            }
            Ok(SessionUpdate::Piece(piece)) => {
                let data = json!({"id": piece.work, "content": piece.text}).to_string();
                write_frame(&mut out, None, "TOKEN_CHUNK", &data);
            }
            Ok(SessionUpdate::TimedOut) => out.push_str(KEEP_ALIVE_FRAME),
            Ok(SessionUpdate::Ended | SessionUpdate::Draining) => return None,
            Err(fault) => {
                // The reader reconnects with its last id and misses nothing.
                tracing::warn!(cause = %fault, "event stream of a session ended by a fault");
                self.has_ended = true;
                return None;
            }
        }
        Some(out.into())
    }
}
