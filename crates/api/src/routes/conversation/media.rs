//! `GET /sessions/{sessionId}/media/{mediaId}`: the bytes of a recording or file.
//!
//! They come from users. They are served as something to store, never as something a browser shows or runs.

use crate::api::SharedState;
use crate::caller::{Caller, OfConversations, RunsRead};
use crate::path_params::PathParams;
use crate::problem::Problem;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use tandem_record::{MediaId, SessionId};

#[utoipa::path(
    get, path = "/v1/host/tandem/sessions/{sessionId}/media/{mediaId}", tag = "conversations",
    operation_id = "readSessionMedia",
    params(("sessionId" = String, Path), ("mediaId" = String, Path)),
    responses((status = 200, description = "The bytes of a recording or file", content_type = "application/octet-stream"),
              (status = 404, description = "The session has no such recording or file"))
)]
pub(super) async fn read(
    State(api): State<SharedState>,
    caller: Caller<OfConversations<RunsRead>>,
    PathParams((session, media)): PathParams<(String, String)>,
) -> Result<Response, Problem> {
    let (session, media) = (SessionId::from(session), MediaId::from(media));
    let _build = api.pages.begin_build(&caller.tenant).await?;
    let read = api.app.read_session_media(&caller, &session, &media);
    let content = read.await?;
    let kind = HeaderValue::try_from(content.content_type);
    let kind = kind
        .ok()
        .filter(|kind| kind.as_bytes().starts_with(b"audio/"));
    let kind = kind.unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let headers = [
        (header::CONTENT_TYPE, kind),
        (
            header::CONTENT_DISPOSITION,
            HeaderValue::from_static("attachment"),
        ),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; sandbox"),
        ),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-store"),
        ),
    ];
    Ok((headers, content.bytes).into_response())
}
