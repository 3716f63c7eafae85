//! The desk: the list of conversations, and one of them with its transcript, its flow and its open questions; the list
//! of escalations, and whose work each is.
//!
//! Questions are answered in the inbox, like those of runs; the desk links there.

mod bridge;
mod bridge_messages;
mod compared_answers;
mod escalation;
mod escalation_list;
mod list;
mod session_page;
mod takeover_panel;

pub use bridge::DeskBridge;
pub use bridge_messages::{
    BridgeAccess, BridgeInput, BridgeLine, BridgeMessages, BridgePageView, BridgeRow, bridge_page,
};
pub use compared_answers::{ComparedAnswersView, ComparedPair, compared_answers_page};
pub use escalation::{DeskEscalation, DeskOffer};
pub(crate) use escalation::{DeskPlace, desk_work};
pub use escalation_list::{
    EscalationListRow, EscalationListView, EscalationSelection, escalation_list_page,
    escalation_rows, escalations_link,
};
pub use list::{ConversationListView, ConversationRow, conversation_list_page, conversation_rows};
pub(crate) use session_page::transcript_items;
pub use session_page::{
    ConversationFlow, ConversationPageView, DeskQuestion, TranscriptLine, conversation_link,
    conversation_page, conversation_parts,
};
pub use takeover_panel::TakeoverPanel;
