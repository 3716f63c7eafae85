//! The page of a web chat, its files, and the script for other sites.

use crate::api::SharedState;
use crate::console::asset_response;
use crate::params::Params;
use crate::path_params::PathParams;
use crate::problem::{Problem, ProblemBody};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use tandem_app::conversation::WebChat;
use tandem_console::{ChatPageView, chat_page, no_chat_page};
use tandem_record::AgentId;

/// The files of the page. Those of the console are not served here.
const FILES: [&str; 3] = ["chat.css", "chat.js", "icon.svg"];
const EMBED_SCRIPT: &str = "embed.js";

/// Everything the page needs comes from this host. Sites that may show it in a frame are added.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; media-src blob:; form-action 'none'; base-uri 'none'; \
                      frame-ancestors 'self'";

/// The page of an agent's chat. It holds nothing of a conversation: that comes over the channel.
pub(super) async fn show(
    State(api): State<SharedState>,
    PathParams(agent): PathParams<String>,
    params: Params,
) -> Response {
    let agent = AgentId::from(agent);
    let chat = match api.app.web_chat(&agent) {
        Ok(chat) => chat,
        Err(error) => return missing(&Problem::from(error)),
    };
    let view = ChatPageView {
        agent_id: chat.agent.to_string(),
        title: chat.title.clone(),
        is_embedded: params.get("embed").is_some(),
    };
    guarded(Html(chat_page(&view)).into_response(), &policy(&chat))
}

fn policy(chat: &WebChat) -> String {
    let mut policy = POLICY.to_owned();
    for origin in &chat.origins {
        policy.push(' ');
        policy.push_str(origin);
    }
    policy
}

fn missing(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status()).expect("a problem has a valid status");
    let html = no_chat_page();
    let mut response = (status, Html(html.clone())).into_response();
    response.extensions_mut().insert(ProblemBody::Html(html));
    guarded(response, POLICY)
}

fn guarded(mut response: Response, policy: &str) -> Response {
    let policy = HeaderValue::from_str(policy).expect("origins are plain text");
    let set: [(HeaderName, HeaderValue); 3] = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (
            header::X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
    ];
    let headers = response.headers_mut();
    for (name, value) in set {
        headers.insert(name, value);
    }
    response
}

pub(super) async fn file(
    PathParams(name): PathParams<String>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    match FILES.contains(&name.as_str()) {
        true => asset_response(&name, &params, &headers),
        false => Err(Problem::not_found("file")),
    }
}

/// Other sites load it with a script tag.
pub(super) async fn embed_script(params: Params, headers: HeaderMap) -> Result<Response, Problem> {
    let mut response = asset_response(EMBED_SCRIPT, &params, &headers)?;
    response.headers_mut().insert(
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("cross-origin"),
    );
    Ok(response)
}
