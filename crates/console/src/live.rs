//! The `data:` lines of the console's live streams.
//!
//! Each function returns JSON on a single line, because a line break inside SSE
//! data would end the field. The script in `assets/console.js` is the only reader.

use serde::Serialize;
use serde_json::Value;

use crate::desk::{ConversationListView, conversation_rows};
use crate::inbox::{CardView, InboxView, inbox_card, inbox_rows};
use crate::run_list::{RunListView, run_list_rows};
use crate::run_page::{EventRow, RunPageView, run_state_fragment};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LiveEvent<'a> {
    sequence: u64,
    at: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_id: Option<&'a str>,
    payload: Value,
}

#[derive(Serialize)]
struct Fragment {
    html: String,
}

/// Data for an `event` message on a run's stream; its `id:` is the sequence.
pub fn event_json(event: &EventRow) -> String {
    let live = LiveEvent {
        sequence: event.sequence,
        at: &event.at,
        kind: &event.kind,
        node_id: event.node_id.as_deref(),
        // Text that is not JSON is shown as a string.
        payload: serde_json::from_str(&event.payload_json)
            .unwrap_or_else(|_| Value::String(event.payload_json.clone())),
    };
    one_line(&live)
}

/// Data for a `state` message on a run's stream.
pub fn state_json(view: &RunPageView) -> String {
    one_line(&Fragment {
        html: run_state_fragment(view),
    })
}

/// Data for a `rows` message on the run list's stream.
pub fn rows_json(view: &RunListView) -> String {
    one_line(&Fragment {
        html: run_list_rows(view),
    })
}

/// Data for a `rows` message on the stream of conversations.
pub fn conversation_rows_json(view: &ConversationListView) -> String {
    html_json(conversation_rows(view))
}

/// Data of a message that carries rendered HTML.
pub fn html_json(html: String) -> String {
    one_line(&Fragment { html })
}

#[derive(Serialize)]
struct LiveCard<'a> {
    id: &'a str,
    open: bool,
    digest: &'a str,
    html: String,
}

/// Data for a `rows` message on the inbox's stream.
pub fn inbox_rows_json(view: &InboxView) -> String {
    one_line(&Fragment {
        html: inbox_rows(view),
    })
}

/// Data for a `card` message on the inbox's stream.
pub fn inbox_card_json(card: &CardView) -> String {
    one_line(&LiveCard {
        id: &card.id,
        open: card.decided.is_none(),
        digest: &card.digest,
        html: inbox_card(card),
    })
}

fn one_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings and JSON values always serialize")
}
