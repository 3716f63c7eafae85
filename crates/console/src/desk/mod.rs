//! The desk: the list of conversations, and one of them with its transcript, its flow and its open questions.
//!
//! Questions are answered in the inbox, like those of runs; the desk links there.

mod list;
mod session_page;

pub use list::{ConversationListView, ConversationRow, conversation_list_page, conversation_rows};
pub(crate) use session_page::transcript_items;
pub use session_page::{
    ConversationFlow, ConversationPageView, DeskQuestion, TranscriptLine, conversation_page,
    conversation_parts,
};
