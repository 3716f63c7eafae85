//! The bridges of a conversation on its page: what passed over them, the form to write as the desk, and the button that
//! stops one.

use super::conversation_view::{SHOWN_MESSAGES, transcript_line};
use super::desk_offer::{admin_token, desk_offer};
use super::page::{PageError, chrome};
use super::session::PostedForm;
use super::shown_bytes::{ShownBytes, line};
use crate::api::{ApiState, SharedState};
use crate::path_params::PathParams;
use crate::problem::Problem;
use crate::routes::console_call;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{Html, Redirect};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use tandem_access::{Identity, Scope};
use tandem_app::conversation::{DeskRight, InspectionCursor, ProxyFound, SessionLog};
use tandem_app::{Completion, Idempotency};
use tandem_console::{
    BridgeAccess, BridgeInput, BridgeLine, BridgeMessages, BridgePageView, BridgeRow, DeskBridge,
    DeskOffer, bridge_page, conversation_link,
};
use tandem_record::conversation::{
    BridgeMessage, BridgeOutcome, BridgeSide, IntentStatus, LedgerMessage, ProxyBridge, ProxyMode,
    ProxyStatus, SessionView,
};
use tandem_record::{Masking, MessageId, ProxyId, Timestamp};

/// Rows of the two columns.
const SHOWN_ROWS: usize = 2 * SHOWN_MESSAGES;
/// Stands for a text that the agent's redaction leaves out.
const LEFT_OUT: &str = "(not shown)";

/// What the page of a conversation shows of its bridges.
#[derive(Default)]
pub(super) struct BridgeParts {
    pub(super) active: Option<DeskBridge>,
    pub(super) messages: Option<BridgeMessages>,
    pub(super) input: Option<BridgeInput>,
}

pub(super) async fn bridge_parts(
    api: &ApiState,
    reader: &Identity,
    session: &SessionView,
    log: &SessionLog,
    csrf: &str,
    shown: &mut ShownBytes,
) -> Result<BridgeParts, Problem> {
    if !log.bridges.has_begun() {
        return Ok(BridgeParts::default());
    }
    let bridges = api.app.bridges_of_session(reader, &session.id).await?;
    let Some(newest) = bridges.first() else {
        return Ok(BridgeParts::default());
    };
    let offers = api.app.bridge_offers(reader, newest);
    let is_active = newest.bridge.status == ProxyStatus::Active;
    let mut messages = BridgeMessages {
        proxy_id: newest.bridge.id.to_string(),
        access: match offers.view {
            DeskRight::None => BridgeAccess::No,
            DeskRight::As(_) => BridgeAccess::Yes,
            DeskRight::NeedsCredential => BridgeAccess::WithToken,
        },
        ..BridgeMessages::default()
    };
    if messages.access == BridgeAccess::Yes {
        let texts = api.app.text_masking(&session.agent_id);
        fill(&mut messages, (session, log), &bridges, texts, shown);
    }
    let input = is_active.then(|| BridgeInput {
        proxy_id: newest.bridge.id.to_string(),
        desk: line(
            newest
                .bridge
                .label
                .as_ref()
                .unwrap_or(&newest.bridge.target),
        ),
        offer: desk_offer(offers.input),
        message_id: next_message_id(log, csrf),
    });
    Ok(BridgeParts {
        active: is_active.then(|| facts(&newest.bridge, desk_offer(offers.stop))),
        messages: Some(messages),
        input,
    })
}

fn facts(bridge: &ProxyBridge, offer: DeskOffer) -> DeskBridge {
    DeskBridge {
        id: bridge.id.to_string(),
        number: bridge.id.short().to_owned(),
        target: match &bridge.label {
            Some(label) => line(&format!("{label} ({})", bridge.target)),
            None => line(&bridge.target),
        },
        mode: mode(bridge).to_owned(),
        started_at: bridge.started_at.rfc3339(),
        deadline: bridge.deadline.map(Timestamp::rfc3339),
        offer,
    }
}

fn mode(bridge: &ProxyBridge) -> &'static str {
    match bridge.mode {
        ProxyMode::Mirror => "mirror",
        ProxyMode::Shadow => "shadow",
    }
}

/// The identity of the text that this reader sends next. It changes with each text of the desk, and is another one in
/// each browser.
fn next_message_id(log: &SessionLog, csrf: &str) -> String {
    let mut newest = log.bridges.messages.iter().rev();
    let last = newest.find(|message| message.from == BridgeSide::Desk);
    let last = last.map_or("", |message| message.id.as_str());
    let digest = Sha256::digest(format!("{csrf}\0bridge\0{last}"));
    let hex: String = digest[..12].iter().map(|b| format!("{b:02x}")).collect();
    format!("console-{hex}")
}

/// A row of both columns before it is written.
enum FoundRow<'a> {
    Texts {
        said: Option<&'a LedgerMessage>,
        passed: Option<&'a BridgeMessage>,
    },
    Began(&'a ProxyBridge),
    Ended(&'a ProxyBridge),
}

/// Both columns in order of time. A text stands beside what was made of it.
fn fill(
    view: &mut BridgeMessages,
    (session, log): (&SessionView, &SessionLog),
    bridges: &[ProxyFound],
    texts: Masking,
    shown: &mut ShownBytes,
) {
    let mut found = rows(log, bridges);
    let surplus = found.len().saturating_sub(SHOWN_ROWS);
    view.is_trimmed = surplus > 0;
    // The newest get the room of the page first.
    let newest = found.drain(surplus..).rev();
    let shown = newest.map(|(at, row)| match row {
        FoundRow::Texts { said, passed } => BridgeRow::Texts {
            said: said.map(|message| {
                let message = LedgerMessage {
                    text: masked(texts, &message.text),
                    ..message.clone()
                };
                transcript_line(session, log, &message, shown)
            }),
            passed: passed.map(|message| {
                let line = passed_line(message, texts, shown);
                Box::new(BridgeLine {
                    // What the user got stands beside it.
                    changed_to: line.changed_to.filter(|_| said.is_none()),
                    ..line
                })
            }),
        },
        FoundRow::Began(bridge) => {
            let (number, mode) = (bridge.id.short(), mode(bridge));
            let desk = bridge.label.as_ref().unwrap_or(&bridge.target);
            BridgeRow::Mark {
                text: line(&format!("Bridge #{number} to {desk} began, mode {mode}")),
                at: at.rfc3339(),
            }
        }
        FoundRow::Ended(bridge) => {
            let reason = bridge.stop_reason.as_deref().unwrap_or("stopped");
            BridgeRow::Mark {
                text: line(&format!("Bridge #{} ended: {reason}", bridge.id.short())),
                at: at.rfc3339(),
            }
        }
    });
    view.rows = shown.collect();
    view.rows.reverse();
}

fn rows<'a>(log: &'a SessionLog, bridges: &'a [ProxyFound]) -> Vec<(Timestamp, FoundRow<'a>)> {
    let mut rows: Vec<(Timestamp, u8, FoundRow<'a>)> = Vec::new();
    for ProxyFound { bridge, .. } in bridges.iter().rev() {
        rows.push((bridge.started_at, 0, FoundRow::Began(bridge)));
        let end = bridge.stopped_at;
        rows.extend(end.map(|at| (at, 2, FoundRow::Ended(bridge))));
    }
    let is_during = |at: Timestamp| {
        bridges.iter().any(|ProxyFound { bridge, .. }| {
            bridge.started_at <= at && bridge.stopped_at.is_none_or(|end| at <= end)
        })
    };
    let during = log.messages.iter().filter(|message| is_during(message.at));
    let mut said: BTreeMap<&str, &LedgerMessage> = during
        .clone()
        .map(|message| (message.id.as_str(), message))
        .collect();
    for passed in &log.bridges.messages {
        let beside = passed.user_side_id().and_then(|id| said.remove(id));
        let row = FoundRow::Texts {
            said: beside,
            passed: Some(passed),
        };
        rows.push((passed.at, 1, row));
    }
    let alone = during.filter(|message| said.contains_key(message.id.as_str()));
    rows.extend(alone.map(|message| {
        let row = FoundRow::Texts {
            said: Some(message),
            passed: None,
        };
        (message.at, 1, row)
    }));
    rows.sort_by_key(|(at, rank, _)| (*at, *rank));
    rows.into_iter().map(|(at, _, row)| (at, row)).collect()
}

fn passed_line(message: &BridgeMessage, texts: Masking, shown: &mut ShownBytes) -> BridgeLine {
    let (by, name) = match message.from {
        BridgeSide::User => ("user", "User".to_owned()),
        BridgeSide::Host => ("host", "Host".to_owned()),
        BridgeSide::Desk => (
            "desk",
            message
                .actor
                .as_ref()
                .map_or_else(|| "Somebody".to_owned(), |actor| line(&actor.id)),
        ),
    };
    let is_input = message.from == BridgeSide::Desk;
    let changed = message.forwarded_text.as_ref();
    let changed = changed.filter(|_| message.is_modified);
    BridgeLine {
        by,
        name,
        text: shown.text(&masked(texts, &message.text)),
        at: message.at.rfc3339(),
        outcome: is_input.then(|| outcome(message)),
        decided_at: message
            .decided_at
            .filter(|_| is_input)
            .map(Timestamp::rfc3339),
        reason: message
            .reason
            .as_ref()
            .map(|reason| line(&masked(texts, reason))),
        changed_to: changed.map(|text| shown.text(&masked(texts, text))),
        delivery: message.delivery.and_then(|status| match status {
            IntentStatus::Sent => None,
            IntentStatus::Pending => Some("being sent".to_owned()),
            IntentStatus::Failed | IntentStatus::WindowClosed => Some("not delivered".to_owned()),
            IntentStatus::Suppressed => Some("suppressed".to_owned()),
            IntentStatus::Canceled => Some("canceled".to_owned()),
        }),
    }
}

fn outcome(message: &BridgeMessage) -> (&'static str, &'static str) {
    match message.outcome {
        BridgeOutcome::Waiting => ("Waits for its turn", "quiet"),
        BridgeOutcome::Denied => ("Denied", "bad"),
        BridgeOutcome::Kept => ("Kept for the flow", "held"),
        BridgeOutcome::Forwarded if message.is_modified => ("Forwarded, changed", "good"),
        BridgeOutcome::Forwarded => ("Forwarded", "good"),
        BridgeOutcome::NotForwarded => ("For the flow only", "held"),
        BridgeOutcome::Dropped => ("Dropped", "bad"),
    }
}

fn masked(texts: Masking, text: &str) -> String {
    match texts.mask_value(&json!(text)) {
        Some(Value::String(shown)) => shown,
        _ => LEFT_OUT.to_owned(),
    }
}

/// Somebody writes as the desk.
pub(super) async fn write(
    State(api): State<SharedState>,
    PathParams(proxy): PathParams<String>,
    headers: HeaderMap,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::ConversationsTakeover)?;
    let call = console_call(by, &headers, admin_token(&posted));
    let proxy = ProxyId::from(proxy);
    let session = api.app.session_of_bridge(by, &proxy).await?;
    let id = MessageId::from(posted.field("messageId").to_owned());
    // Browsers send line ends of their own.
    let input = (id, posted.field("text").replace("\r\n", "\n"));
    let sent = api
        .app
        .send_proxy_input(&call, proxy, input, Idempotency::none());
    sent.await?;
    Ok(Redirect::to(&conversation_link(session.as_str())))
}

pub(super) async fn stop(
    State(api): State<SharedState>,
    PathParams(proxy): PathParams<String>,
    headers: HeaderMap,
    posted: PostedForm,
) -> Result<Redirect, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::ConversationsTakeover)?;
    let call = console_call(by, &headers, admin_token(&posted));
    let proxy = ProxyId::from(proxy);
    let stopped = api.app.stop_proxy(&call, proxy, None, Idempotency::none());
    let Completion::Done(stopped) = stopped.await? else {
        unreachable!("a form has no idempotency key");
    };
    Ok(Redirect::to(&conversation_link(stopped.session.as_str())))
}

/// What passed over the bridges of a conversation, for those whom a token gives the right. It is a form, so that the
/// token is in no address.
pub(super) async fn show(
    State(api): State<SharedState>,
    PathParams(proxy): PathParams<String>,
    headers: HeaderMap,
    posted: PostedForm,
) -> Result<Html<String>, PageError> {
    let by = &posted.by;
    by.require_scope(Scope::RunsRead)?;
    let call = console_call(by, &headers, admin_token(&posted));
    let proxy = ProxyId::from(proxy);
    let _build = api.pages.begin_build(&by.tenant).await?;
    let read = api
        .app
        .read_proxy(&call, &proxy, InspectionCursor::default(), 1);
    let session = read.await?.found.session;
    let found = api.app.read_chat_session(by, &session).await?;
    let log = api.app.read_session_log(by, &session).await?;
    let bridges = api.app.bridges_of_session(by, &session).await?;
    let mut messages = BridgeMessages {
        proxy_id: proxy.to_string(),
        access: BridgeAccess::Yes,
        ..BridgeMessages::default()
    };
    let texts = api.app.text_masking(&found.agent_id);
    let mut shown = ShownBytes::page();
    fill(&mut messages, (&found, &log), &bridges, texts, &mut shown);
    let view = BridgePageView {
        session_id: session.to_string(),
        agent_id: found.agent_id.to_string(),
        user: line(&found.user_external_id),
        messages,
    };
    Ok(Html(bridge_page(&chrome(&api, by), &view)))
}
