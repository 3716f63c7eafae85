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

/// One of each state, as readers with and without rights see them.
fn escalations() -> Vec<DeskEscalation> {
    let states = [
        (None, None, DeskOffer::As(hostile())),
        (Some(hostile()), None, DeskOffer::WithToken),
        (Some(hostile()), Some(hostile()), DeskOffer::As(hostile())),
        (Some(hostile()), Some(hostile()), DeskOffer::Nothing),
    ];
    let escalations = states.map(|(assignee, claimed_at, offer)| DeskEscalation {
        id: hostile(),
        reason: hostile(),
        priority: Some(hostile()),
        queue: Some(hostile()),
        is_stopped: claimed_at.is_some(),
        assignee,
        claimed_at,
        created_at: hostile(),
        deadline: Some(hostile()),
        offer,
    });
    escalations.into()
}

fn escalation_list() -> EscalationListView {
    let rows = escalations().into_iter();
    EscalationListView {
        rows: rows
            .map(|escalation| EscalationListRow {
                escalation,
                session_id: hostile(),
                agent_id: hostile(),
                user: hostile(),
            })
            .collect(),
        selection: EscalationSelection {
            queue: Some(hostile()),
            assignee: Some(hostile()),
            unclaimed: true,
        },
        next_cursor: Some(hostile()),
        live: true,
        csrf: hostile(),
    }
}

/// Both columns of a bridge, alone and beside each other, and what a reader without a right sees.
fn bridge_messages(access: BridgeAccess) -> BridgeMessages {
    let passed = ["user", "desk", "host"].map(|by| BridgeLine {
        by,
        name: hostile(),
        text: hostile(),
        at: hostile(),
        outcome: Some(("Forwarded", "good")),
        decided_at: Some(hostile()),
        reason: Some(hostile()),
        changed_to: Some(hostile()),
        delivery: Some(hostile()),
    });
    let mut rows = vec![BridgeRow::Mark {
        text: hostile(),
        at: hostile(),
    }];
    rows.extend(lines().into_iter().zip(passed).flat_map(|(said, passed)| {
        let (said, passed) = (Some(said), Some(Box::new(passed)));
        let both = (said.clone(), passed.clone());
        let texts = [both, (said, None), (None, passed)];
        texts.map(|(said, passed)| BridgeRow::Texts { said, passed })
    }));
    BridgeMessages {
        proxy_id: hostile(),
        access,
        rows,
        is_trimmed: true,
    }
}

fn bridge() -> BridgePageView {
    BridgePageView {
        session_id: hostile(),
        agent_id: hostile(),
        user: hostile(),
        messages: bridge_messages(BridgeAccess::Yes),
    }
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
        takeover: TakeoverPanel {
            is_taken_over: true,
            holder: Some(hostile()),
            offer: DeskOffer::WithToken,
            message_id: hostile(),
        },
        flow: Some(ConversationFlow {
            flow_id: hostile(),
            run_id: hostile(),
            paused_on: Some(hostile()),
            deadline: Some(hostile()),
            answers: vec![(hostile(), hostile())],
        }),
        bridge: Some(DeskBridge {
            id: hostile(),
            number: hostile(),
            target: hostile(),
            mode: hostile(),
            started_at: hostile(),
            deadline: Some(hostile()),
            offer: DeskOffer::WithToken,
        }),
        bridge_messages: Some(bridge_messages(BridgeAccess::Yes)),
        bridge_input: Some(BridgeInput {
            proxy_id: hostile(),
            desk: hostile(),
            offer: DeskOffer::WithToken,
            message_id: hostile(),
        }),
        escalations: escalations(),
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
        can_compare: true,
        csrf: hostile(),
    }
}

fn compared() -> ComparedAnswersView {
    let pair = ComparedPair {
        user: lines(),
        human: lines(),
        agent: vec![hostile()],
        actions: vec![hostile()],
        error: Some(hostile()),
    };
    ComparedAnswersView {
        session_id: hostile(),
        agent_id: hostile(),
        user: hostile(),
        pairs: vec![pair, ComparedPair::default()],
        lines: Some(hostile()),
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
        escalation: escalations().pop(),
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
        ("bridge", bridge_page(chrome, &bridge())),
        (
            "conversation with a bridge that a token shows",
            conversation_page(
                chrome,
                &ConversationPageView {
                    bridge_messages: Some(bridge_messages(BridgeAccess::WithToken)),
                    ..conversation()
                },
            ),
        ),
        (
            "compared answers",
            compared_answers_page(chrome, &compared()),
        ),
        (
            "no compared answers",
            compared_answers_page(chrome, &ComparedAnswersView::default()),
        ),
        (
            "long compared answers",
            compared_answers_page(
                chrome,
                &ComparedAnswersView {
                    lines: None,
                    ..compared()
                },
            ),
        ),
        (
            "escalations",
            escalation_list_page(chrome, &escalation_list()),
        ),
        (
            "no escalations",
            escalation_list_page(chrome, &EscalationListView::default()),
        ),
        ("escalation", inbox_page(chrome, &inbox(Some(card)))),
    ]
}

pub(super) fn fragments() -> Vec<(&'static str, String)> {
    let mut all = conversation_parts(&conversation()).to_vec();
    all.push(("escalation rows", escalation_rows(&escalation_list())));
    all.push(("conversation rows", conversation_rows(&list())));
    all
}

#[test]
fn answers_are_compared_only_where_it_is_offered() {
    let offered = conversation_page(&chrome(), &conversation());
    let bare = conversation_page(&chrome(), &ConversationPageView::default());
    assert!(offered.contains("id=\"action-compare\"") && !bare.contains("action-compare"));
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
    let compared = compared_answers_page(&chrome(), &compared());
    for (script, html) in [
        ("chat.js", chat()),
        ("desk.js", desk),
        ("compared.js", compared),
    ] {
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
    for script in ["chat.js", "embed.js", "desk.js", "compared.js"] {
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
