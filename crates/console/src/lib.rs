//! The web console served at `/console`, and the page of the web chat: view models in, HTML out.
//!
//! Owns every page and fragment of the console, the drawing of a workflow graph, the forms made
//! from JSON Schemas and the values read back from them, and the stylesheets and scripts.
//!
//! Does not depend on HTTP, sessions, the store, the engine or the wire. A caller fills a view
//! model with what this reader may see; nothing here decides that.
//!
//! Invariants:
//! - Rendering is pure. The same view model gives the same bytes. There is no clock: the browser
//!   computes relative times from `<time datetime>`.
//! - All text passes maud's escaping, and every id in a URL is encoded by `links`.
//! - Nothing needs `unsafe-inline`: no inline script, no `style` attribute. State for the script is
//!   in `data-*` attributes.
//! - A link is rendered only to a page that exists.

mod assets;
mod changes;
mod chat;
mod chrome;
mod compare;
mod desk;
mod graph;
mod history;
mod inbox;
mod links;
mod list_page;
mod live;
mod login;
mod problem;
mod run_list;
mod run_page;
mod schedules;
mod schema_form;
mod status;
mod time;
mod webhooks;
mod workflows;

#[cfg(test)]
mod tests;

pub use assets::{Asset, asset};
pub use chat::{ChatPageView, chat_page, no_chat_page};
pub use chrome::Chrome;
pub use compare::{ComparePageView, ComparedRun, EventDifference, StateDifference, compare_page};
pub use desk::{
    BridgeAccess, BridgeInput, BridgeLine, BridgeMessages, BridgePageView, BridgeRow,
    ComparedAnswersView, ComparedPair, ConversationFlow, ConversationListView,
    ConversationPageView, ConversationRow, DeskBridge, DeskEscalation, DeskOffer, DeskQuestion,
    EscalationListRow, EscalationListView, EscalationSelection, TakeoverPanel, TranscriptLine,
    bridge_page, compared_answers_page, conversation_link, conversation_list_page,
    conversation_page, conversation_parts, conversation_rows, escalation_list_page,
    escalation_rows, escalations_link,
};
pub use graph::{GraphEdge, GraphNode, GraphView, NodeState, workflow_svg};
pub use history::{
    ForkOffer, HistoryPageView, MemoryEntryRow, MemoryPanelView, OpenQuestion, ReachedNode,
    history_fragment, history_page,
};
pub use inbox::{
    CardConversation, CardView, Decided, FollowUpQuestion, InboxRow, InboxSelection, InboxView,
    NextStep, VoteView, inbox_card, inbox_page, inbox_rows, question_link, read_answer,
};
pub use live::{
    conversation_rows_json, event_json, html_json, inbox_card_json, inbox_rows_json, rows_json,
    state_json,
};
pub use login::login_page;
pub use problem::error_page;
pub use run_list::{RunListFilter, RunListRow, RunListView, run_list_page, run_list_rows};
pub use run_page::{
    AgentsView, AnsweredView, CheckView, EventRow, ForkOrigin, HandoffView, IterationView,
    RunPageView, RunTreeView, run_page, run_state_fragment,
};
pub use schedules::{
    LocalMoment, RecipientListRow, ScheduleListRow, ScheduleListView, SchedulePageView,
    ScheduleRunListRow, ScheduleRunPageView, ScheduleSelection, ScheduleTriggerView,
    ScheduledStartView, schedule_link, schedule_list_page, schedule_page, schedule_parts,
    schedule_rows, schedule_run_page,
};
pub use webhooks::{
    WebhookDeliveryRow, WebhookListView, WebhookPageView, WebhookRow, webhook_list_page,
    webhook_page,
};
pub use workflows::{
    WorkflowListView, WorkflowPageView, WorkflowRow, workflow_list_page, workflow_page,
};
