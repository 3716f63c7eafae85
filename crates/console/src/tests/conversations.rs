//! The desk and the page of the web chat, in which every text is hostile.

use super::questions::{inbox, question};
use super::{HOSTILE, chrome, hostile, tags};
use crate::*;

fn lines() -> Vec<TranscriptLine> {
    ["user", "agent", "human"]
        .map(|by| TranscriptLine {
            by,
            name: hostile(),
            text: hostile(),
            at: hostile(),
            delivery: Some(hostile()),
        })
        .into()
}

fn conversation() -> ConversationPageView {
    ConversationPageView {
        session_id: hostile(),
        agent_id: hostile(),
        user: hostile(),
        state: hostile(),
        tone: "held",
        started_at: hostile(),
        last_active_at: hostile(),
        ended_at: None,
        waiting_since: Some(hostile()),
        flow: Some(ConversationFlow {
            flow_id: hostile(),
            run_id: hostile(),
            paused_on: Some(hostile()),
            deadline: Some(hostile()),
            answers: vec![(hostile(), hostile())],
        }),
        questions: vec![DeskQuestion {
            id: hostile(),
            kind: hostile(),
            title: hostile(),
            created_at: hostile(),
            deadline: Some(hostile()),
            is_for_admins: true,
        }],
        transcript: lines(),
        lines_omitted: 3,
        can_end: true,
        csrf: hostile(),
    }
}

fn list() -> ConversationListView {
    ConversationListView {
        rows: vec![ConversationRow {
            session_id: hostile(),
            agent_id: hostile(),
            user: hostile(),
            state: hostile(),
            tone: "good",
            flow_id: Some(hostile()),
            waiting_since: Some(hostile()),
            last_active_at: hostile(),
            messages: 2,
        }],
        agents: vec![hostile()],
        agent: Some(hostile()),
        with_ended: true,
        next_cursor: Some(hostile()),
        live: true,
    }
}

pub(super) fn pages(chrome: &Chrome) -> Vec<(&'static str, String)> {
    let card = CardView {
        conversation: Some(CardConversation {
            session_id: hostile(),
            agent_id: hostile(),
            user: hostile(),
            transcript: lines(),
        }),
        ..question("approval")
    };
    vec![
        ("conversations", conversation_list_page(chrome, &list())),
        (
            "no conversations",
            conversation_list_page(chrome, &ConversationListView::default()),
        ),
        ("conversation", conversation_page(chrome, &conversation())),
        (
            "bare conversation",
            conversation_page(chrome, &ConversationPageView::default()),
        ),
        ("escalation", inbox_page(chrome, &inbox(Some(card)))),
    ]
}

pub(super) fn fragments() -> Vec<(&'static str, String)> {
    let mut all = conversation_parts(&conversation()).to_vec();
    all.push(("conversation rows", conversation_rows(&list())));
    all
}

fn chat() -> String {
    chat_page(&ChatPageView {
        agent_id: hostile(),
        title: hostile(),
        is_embedded: true,
    })
}

#[test]
fn chat_page_loads_only_its_own_files_and_escapes_its_texts() {
    for html in [chat(), no_chat_page()] {
        for tag in tags(&html) {
            assert!(!["style", "img"].contains(&&*tag.name), "{html}");
            let loaded = tag.attribute("src").or(tag.attribute("href"));
            if let Some(url) = loaded {
                assert!(url.starts_with("/chat/assets/"), "{url}");
            }
            let inline = |(name, _): &(String, String)| name.starts_with("on") || name == "style";
            assert!(!tag.attributes.iter().any(inline), "{html}");
        }
        assert!(!html.contains(HOSTILE));
    }
}

#[test]
fn pages_contain_the_elements_their_scripts_use() {
    let desk = conversation_page(&chrome(), &conversation());
    for (script, html) in [("chat.js", chat()), ("desk.js", desk)] {
        let tags = tags(&html);
        let ids: Vec<&str> = tags.iter().filter_map(|t| t.attribute("id")).collect();
        let code = std::str::from_utf8(asset(script).unwrap().body).unwrap();
        for piece in code.split("byId('").skip(1) {
            let id = piece.split('\'').next().unwrap();
            assert!(ids.contains(&id), "{script} looks for #{id}");
        }
    }
}

/// Text of people reaches the chat as text. Nothing in its scripts parses HTML or runs text.
#[test]
fn chat_scripts_never_parse_text() {
    for script in ["chat.js", "embed.js", "desk.js"] {
        let code = std::str::from_utf8(asset(script).unwrap().body).unwrap();
        for danger in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
        ] {
            assert!(!code.contains(danger), "{script} uses {danger}");
        }
    }
}
