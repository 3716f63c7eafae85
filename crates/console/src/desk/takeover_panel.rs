//! Who has a conversation: the button that takes it over, and what the person who has it writes and does.

use maud::{Markup, html};

use super::escalation::DeskOffer;
use crate::links;

/// Who speaks with the user, and what this reader may do about it.
#[derive(Debug, Clone, Default)]
pub struct TakeoverPanel {
    /// A person does, and the agent is silent.
    pub is_taken_over: bool,
    /// That person, where one has come.
    pub holder: Option<String>,
    pub offer: DeskOffer,
    /// The identity of the next text: sent twice, it reaches the user once.
    pub message_id: String,
}

pub(super) fn takeover_part(panel: &TakeoverPanel, session_id: &str, csrf: &str) -> Markup {
    html! {
        // An empty part stays, so that the live stream can fill it.
        div.transcript-actions data-part="takeover" {
            @if panel.is_taken_over { (holder(panel)) }
            @if panel.offer != DeskOffer::Nothing {
                @if panel.is_taken_over { (reply(panel, session_id, csrf)) }
                @if !panel.is_taken_over || panel.holder.is_none() { (take(panel, session_id, csrf)) }
                @if panel.is_taken_over { (hand_back(panel, session_id, csrf)) }
            }
        }
    }
}

fn holder(panel: &TakeoverPanel) -> Markup {
    html! {
        p.holder role="status" {
            @match &panel.holder {
                Some(who) => { strong { (who) } " has the conversation. The agent is silent." },
                None => { span.unclaimed { "The user waits for a person. The agent is silent." } },
            }
        }
    }
}

fn take(panel: &TakeoverPanel, session_id: &str, csrf: &str) -> Markup {
    html! {
        form.desk-form method="post" action=(links::conversation_takeover(session_id)) {
            input type="hidden" name="csrf" value=(csrf);
            button #action-takeover type="submit" { "Take over" span.visually-hidden { " this conversation" } }
            (token(panel, "takeover-token"))
            p.hint { "You speak with the user, and the agent is silent until you hand back." }
        }
    }
}

fn reply(panel: &TakeoverPanel, session_id: &str, csrf: &str) -> Markup {
    html! {
        form.reply method="post" action=(links::conversation_takeover_messages(session_id)) {
            input type="hidden" name="csrf" value=(csrf);
            input type="hidden" name="messageId" value=(panel.message_id);
            label for="reply-text" { "Your text to the user" }
            textarea #reply-text name="text" rows="3" required maxlength="16000" {}
            div.desk-form {
                button #action-reply type="submit" { "Send" span.visually-hidden { " to the user" } }
                (token(panel, "reply-token"))
            }
        }
    }
}

fn hand_back(panel: &TakeoverPanel, session_id: &str, csrf: &str) -> Markup {
    html! {
        details.handback {
            summary { "Hand back to the agent" }
            form.reply method="post" action=(links::conversation_handback(session_id)) {
                input type="hidden" name="csrf" value=(csrf);
                label for="handback-note" { "Note for the agent, not sent to the user" }
                textarea #handback-note name="note" rows="2" maxlength="4000" {}
                div.desk-form {
                    button #action-handback type="submit" { "Hand back" }
                    (token(panel, "handback-token"))
                }
            }
        }
    }
}

/// Rules of an agent that are written as data know admins by a token. It is sent with the request and not kept.
fn token(panel: &TakeoverPanel, id: &str) -> Markup {
    html! {
        @if panel.offer == DeskOffer::WithToken {
            label for=(id) { "Admin token" }
            input id=(id) type="password" name="adminToken" autocomplete="off" autocapitalize="none"
                spellcheck="false";
        }
    }
}
