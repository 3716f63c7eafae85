//! The page of a web chat, for visitors without a key. It is no page of the console: it has no navigation and
//! shows nothing of the host but the chat's title. The script fills it over the UI channel.

use maud::{DOCTYPE, Markup, html};

use crate::{assets, links};

/// What the page knows before the conversation is loaded.
#[derive(Debug, Clone, Default)]
pub struct ChatPageView {
    pub agent_id: String,
    pub title: String,
    /// Shown in a frame of another page, which has its own close button.
    pub is_embedded: bool,
}

pub fn chat_page(view: &ChatPageView) -> String {
    let body = html! {
        div #chat .chat .embedded[view.is_embedded] data-agent=(view.agent_id)
            data-channel=(links::ui_channel(&view.agent_id)) {
            header.top {
                h1 { (view.title) }
                p #connection .connection role="status" { "Connecting" }
            }
            main #log .log tabindex="0" aria-label="Conversation" {
                p #older .note hidden { "Earlier messages are not shown." }
                ol #messages .messages {}
                p #typing .typing hidden aria-label="Is writing" { i {} i {} i {} }
                div #options .options role="group" aria-label="Answers" hidden {}
                p #ended .note hidden { "This conversation has ended. Write to start a new one." }
            }
            form #composer .composer {
                label.visually-hidden for="text" { "Message" }
                textarea #text rows="1" maxlength="8000" placeholder="Write a message" autocomplete="off"
                    enterkeyhint="send" required {}
                button #send type="submit" aria-label="Send" {
                    svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" {
                        path d="M4 12 20 4l-5 16-3.5-6.5z" {}
                    }
                }
            }
            p #notice .notice role="alert" hidden {}
            noscript { p.notice { "This chat needs JavaScript." } }
            // What screen readers announce; it is never replaced.
            p #announce .visually-hidden role="log" aria-live="polite" {}
        }
    };
    document(&view.title, &body, true)
}

/// The page where there is no chat.
pub fn no_chat_page() -> String {
    let body = html! {
        div.chat.missing {
            main { h1 { "There is no chat here" } p { "The address may be wrong, or the chat was closed." } }
        }
    };
    document("No chat", &body, false)
}

fn document(title: &str, body: &Markup, has_script: bool) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) }
                link rel="icon" type="image/svg+xml" href=(assets::chat_url("icon.svg"));
                link rel="stylesheet" href=(assets::chat_url("chat.css"));
                @if has_script { script src=(assets::chat_url("chat.js")) defer {} }
            }
            body { (body) }
        }
    }
    .into_string()
}
