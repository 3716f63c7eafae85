//! Cards and lists as rendered, and answers as posted by a browser.

use super::*;
use crate::tests::scan::tags;
use serde_json::{Value, json};

fn card(kind: &str, data: Value) -> CardView {
    CardView {
        id: "q1".to_owned(),
        kind: kind.to_owned(),
        digest: "d1".to_owned(),
        csrf: "token".to_owned(),
        actions: ["accept", "reject", "refine", "edit-accept", "ask"]
            .map(str::to_owned)
            .into(),
        data,
        ..CardView::default()
    }
}

fn sent(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

#[test]
fn approvals_are_read_by_action() {
    let card = card("approval", json!({"artifactData": {"amount": 5}}));
    let table = [
        (vec![("action", "accept")], json!({"action": "accept"})),
        (
            vec![("action", "reject"), ("comment", " no\r\nway ")],
            json!({"action": "reject", "feedback": "no\nway"}),
        ),
        (
            vec![("action", "refine"), ("comment", "shorter")],
            json!({"action": "refine", "refineFeedback": {"scope": "whole", "text": "shorter"}}),
        ),
        (
            vec![("action", "ask"), ("comment", "why?")],
            json!({"action": "ask", "question": "why?"}),
        ),
        (
            vec![
                ("action", "edit-accept"),
                ("v/editedArtifactData/amount", "7"),
            ],
            json!({"action": "edit-accept", "editedArtifactData": {"amount": 7}}),
        ),
    ];
    for (fields, expected) in table {
        assert_eq!(read_answer(&card, &sent(&fields)), Ok(expected));
    }
    for action in ["refine", "ask"] {
        let missing = read_answer(&card, &sent(&[("action", action), ("comment", " ")]));
        assert_eq!(missing.unwrap_err().len(), 1, "{action} needs words");
    }
}

#[test]
fn held_agent_decision_uses_the_decision_form() {
    for kind in ["low-confidence", "x-host-tandem-doubt"] {
        let data = json!({"agentId": "ada", "observed": 0.4, "threshold": 0.7,
            "decision": {"kind": "terminate", "confidence": 0.4},
            "actions": ["accept", "edit-accept", "reject"]});
        let held = card(kind, data);
        let html = inbox_card(&held);
        for part in [
            "0.4 sure",
            "0.7 is required",
            "name=\"v/decision/kind\"",
            "value=\"reject\"",
        ] {
            assert!(html.contains(part), "{kind}: {part}");
        }
        let fields = [
            ("action", "edit-accept"),
            ("v/decision/kind", "next"),
            ("v/decision/confidence", "1"),
        ];
        assert_eq!(
            read_answer(&held, &sent(&fields)),
            Ok(json!({"action": "edit-accept", "decision": {"kind": "next", "confidence": 1}}))
        );
    }
}

#[test]
fn clarification_answers_are_read_by_type() {
    let questions = json!({"questions": [
        {"id": "n", "question": "How many?", "schema": {"type": "integer"}},
        {"id": "why", "question": "Why?"}]});
    let card = card("clarification", questions);
    let good = sent(&[("v/answers/n", "3"), ("v/answers/why", "Because.")]);
    assert_eq!(
        read_answer(&card, &good),
        Ok(json!({"answers": {"n": 3, "why": "Because."}}))
    );
    let bad = read_answer(&card, &sent(&[("v/answers/n", "x")])).unwrap_err();
    let places: Vec<&str> = bad.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["/answers/n", "/answers/why"]);
}

#[test]
fn other_kinds_use_schema_form_or_json() {
    let mut typed = card("custom", json!({"customKind": "size"}));
    typed.resume_schema = Some(json!({"type": "object", "required": ["size"],
        "properties": {"size": {"type": "number"}}}));
    assert!(inbox_card(&typed).contains("name=\"v/size\""));
    let size = sent(&[("v/size", "2.5")]);
    assert_eq!(read_answer(&typed, &size), Ok(json!({"size": 2.5})));

    for kind in ["external-event", "low-confidence", "x-host-acme-odd"] {
        let free = card(
            kind,
            json!({"correlation": {"id": 1}, "decision": {"go": true}}),
        );
        assert!(inbox_card(&free).contains("data-json-field"), "{kind}");
        let read = read_answer(&free, &sent(&[("v", "{\"id\": 1, \"more\": []}")]));
        assert_eq!(read, Ok(json!({"id": 1, "more": []})), "{kind}");
        assert!(read_answer(&free, &sent(&[("v", "{")])).is_err(), "{kind}");
    }
}

#[test]
fn every_form_carries_csrf_and_digest() {
    for kind in ["approval", "clarification", "custom", "x-host-acme-odd"] {
        let html = inbox_card(&card(
            kind,
            json!({"questions": [{"id": "a", "question": "?"}]}),
        ));
        let tags = tags(&html);
        let forms = tags.iter().enumerate().filter(|(_, t)| t.name == "form");
        let mut seen = 0;
        for (i, form) in forms {
            assert_eq!(form.attribute("action"), Some("/console/inbox/q1/answer"));
            assert_eq!(tags[i + 1].attribute("value"), Some("token"), "{kind}");
            assert_eq!(tags[i + 2].attribute("value"), Some("d1"), "{kind}");
            seen += 1;
        }
        assert!(seen > 0, "{kind}");
    }
}

#[test]
fn closed_question_shows_decider_and_no_form() {
    let mut closed = card("approval", json!({}));
    closed.decided = Some(Decided {
        outcome: "rejected".to_owned(),
        by: Some("ana".to_owned()),
        at: Some("2026-01-01T00:00:00Z".to_owned()),
    });
    closed.refused = Some("The question was decided before.".to_owned());
    let html = inbox_card(&closed);
    for part in ["Rejected", " by ana", "2026-01-01", "decided before"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<form") && !html.contains("data-open"));
}

#[test]
fn reader_without_permission_sees_reason_and_no_form() {
    let mut card = card("approval", json!({}));
    card.denied_reason = Some("You are not among them.".to_owned());
    let html = inbox_card(&card);
    assert!(!html.contains("<form") && html.contains("You are not among them."));
}

#[test]
fn plain_approval_with_edits_is_refused() {
    let data =
        json!({"artifactData": {"amount": 129, "note": "a\nb", "gift": true, "tags": ["x"]}});
    let card = card("approval", data);
    let name = |key: &str| format!("v/editedArtifactData/{key}");
    let form = |action: &str, amount: &str| {
        vec![
            ("action".to_owned(), action.to_owned()),
            (name("amount"), amount.to_owned()),
            // As a browser sends it: line ends, a ticked box, the empty entry for the next tag.
            (name("note"), "a\r\nb".to_owned()),
            (name("gift"), "true".to_owned()),
            (name("tags/0"), "x".to_owned()),
            (name("tags/1"), String::new()),
        ]
    };
    let places = |fields: &[(String, String)]| {
        let field_errors = read_answer(&card, fields).unwrap_err();
        field_errors
            .into_iter()
            .map(|(place, _)| place)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        read_answer(&card, &form("accept", "129")),
        Ok(json!({"action": "accept"})),
        "nothing was changed"
    );
    for amount in ["7", "", "many"] {
        assert_eq!(places(&form("accept", amount)), ["/action"], "{amount:?}");
    }
    let edited = read_answer(&card, &form("edit-accept", "7")).unwrap();
    assert_eq!(edited["editedArtifactData"]["amount"], 7);
    assert_eq!(
        places(&form("edit-accept", "129")),
        ["/action"],
        "no change"
    );
    // A browser does not send an unticked box.
    let mut unticked = form("accept", "129");
    unticked.retain(|(field, _)| !field.ends_with("/gift"));
    assert_eq!(places(&unticked), ["/action"]);
    let refused = read_answer(&card, &form("reject", "7"));
    assert_eq!(
        refused,
        Ok(json!({"action": "reject"})),
        "a refusal refuses either"
    );
}

#[test]
fn rejected_form_keeps_entered_values() {
    let mut card = card("approval", json!({"artifactData": {"amount": 129}}));
    let html = inbox_card(&card);
    assert_eq!(html.matches("<form").count(), 1);
    assert!(
        !html.contains("data-edited") && html.contains("id=\"edited-note\" hidden"),
        "{html}"
    );
    card.entered = sent(&[("action", "accept"), ("v/editedArtifactData/amount", "7")]);
    let html = inbox_card(&card);
    for part in ["data-edited", "value=\"7\"", "details id=\"edit\" open"] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn edits_are_shown_before_and_after() {
    let mut card = card("approval", json!({"artifactData": {"amount": 129}}));
    card.edited = Some(json!({"amount": 7}));
    card.votes = vec![VoteView {
        voter: "ana".to_owned(),
        delegate: Some("ben".to_owned()),
        action: "edit-accept".to_owned(),
        feedback: Some("too much".to_owned()),
        ..VoteView::default()
    }];
    card.decided = Some(Decided {
        outcome: "accepted".to_owned(),
        ..Decided::default()
    });
    let html = inbox_card(&card);
    for part in [
        "Approved with changes",
        "<del>129</del>",
        "<ins>7</ins>",
        "ana",
        "through ben",
        "approved with changes",
        "too much",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    // A later voter sees the edit too.
    card.decided = None;
    card.edited = None;
    card.proposed = Some(json!({"amount": 500}));
    let html = inbox_card(&card);
    assert!(
        html.contains("<del>500</del>") && html.contains("<ins>129</ins>"),
        "{html}"
    );
}

#[test]
fn a_large_artifact_is_folded() {
    let html = inbox_card(&card("approval", json!({"artifactData": "x".repeat(5000)})));
    assert!(html.contains("5000 characters"), "folded under its size");
    let small = inbox_card(&card("approval", json!({"artifactData": "x"})));
    assert!(!small.contains("characters"));
}

#[test]
fn inbox_links_keep_the_selection() {
    let view = InboxView {
        rows: vec![InboxRow {
            id: "q/1".to_owned(),
            deadline: Some("2026-01-01T00:00:00Z".to_owned()),
            priority: 7,
            groups: vec!["finance".to_owned()],
            votes: Some((1, 3)),
            ..InboxRow::default()
        }],
        selection: InboxSelection {
            kind: Some("approval".to_owned()),
            sort: Some("priority".to_owned()),
            ..InboxSelection::default()
        },
        next_cursor: Some("q1.2".to_owned()),
        ..InboxView::default()
    };
    let html = inbox_page(&Chrome::default(), &view);
    for part in [
        "href=\"/console/inbox/q%2F1?kind=approval&amp;sort=priority\"",
        "kind=approval&amp;sort=priority&amp;cursor=q1.2",
        "data-live-inbox=\"/console/inbox/live?kind=approval&amp;sort=priority\"",
        "data-as=\"countdown\"",
        "Priority 7",
        "1 of 3 votes",
        "finance",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
}

#[test]
fn inbox_page_contains_the_elements_the_script_uses() {
    let card = card("approval", json!({}));
    let view = InboxView {
        chosen: Some(card.id.clone()),
        card: Some(card),
        ..InboxView::default()
    };
    let html = inbox_page(&Chrome::default(), &view);
    let tags = tags(&html);
    let ids: Vec<&str> = tags.iter().filter_map(|t| t.attribute("id")).collect();
    let script = std::str::from_utf8(crate::asset("inbox.js").unwrap().body).unwrap();
    for piece in script.split("byId('").skip(1) {
        let id = piece.split('\'').next().unwrap();
        assert!(ids.contains(&id), "inbox.js looks for #{id}");
    }
}
