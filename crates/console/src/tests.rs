//! Properties of every page: escaping, the markup a strict content security policy requires, and
//! the markup that `console.js` uses.

mod conversations;
mod history;
mod questions;
pub(crate) mod scan;
mod schedules;

use crate::*;
use questions::{decided, inbox, question};
use scan::tags;

/// Tries to break out of an attribute, an element, a path and a script.
const HOSTILE: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>/../&amp;?#%00";

fn chrome() -> Chrome {
    Chrome {
        signed_in_as: Some(HOSTILE.to_owned()),
        tenant: Some(HOSTILE.to_owned()),
        csrf: Some(HOSTILE.to_owned()),
        version: "0.0.0",
    }
}

fn hostile() -> String {
    HOSTILE.to_owned()
}

fn graph() -> GraphView {
    let node = |id: &str, state| GraphNode {
        id: id.to_owned(),
        name: hostile(),
        type_id: hostile(),
        state,
    };
    GraphView {
        nodes: vec![
            node(HOSTILE, NodeState::Completed),
            node("b", NodeState::Running),
        ],
        edges: vec![GraphEdge {
            source: hostile(),
            target: "b".to_owned(),
            label: Some(hostile()),
            conditional: true,
        }],
    }
}

fn event() -> EventRow {
    EventRow {
        sequence: 7,
        at: hostile(),
        kind: hostile(),
        node_id: Some(hostile()),
        payload_json: format!("{{\n  \"text\": {:?}\n}}", "</template></pre><script>\n"),
    }
}

fn run() -> RunPageView {
    RunPageView {
        run_id: hostile(),
        workflow_id: hostile(),
        status: hostile(),
        created_at: hostile(),
        started_at: Some(hostile()),
        ended_at: Some(hostile()),
        parent_run_id: Some(hostile()),
        forked_from: Some(history::origin()),
        error: Some((hostile(), hostile())),
        graph: graph(),
        events: vec![event()],
        events_omitted: 3,
        variables_json: hostile(),
        last_sequence: Some(7),
        can_cancel: true,
        can_pause: true,
        can_resume: true,
        child_runs: vec![(hostile(), hostile())],
        supervised: true,
        agents: AgentsView {
            floor: 0.5,
            iterations: vec![IterationView {
                number: 1,
                agent: hostile(),
                kind: hostile(),
                reason: Some(hostile()),
                confidence: Some(0.3),
                escalated: true,
                handoffs: vec![HandoffView {
                    worker: hostile(),
                    child: Some(hostile()),
                    steps: vec![(hostile(), hostile())],
                    error: Some(hostile()),
                }],
                checks: vec![
                    CheckView {
                        critic: hostile(),
                        child: Some(hostile()),
                        verdict: Some(hostile()),
                        criteria: vec![hostile()],
                        confidence: Some(0.9),
                    },
                    CheckView {
                        critic: hostile(),
                        ..CheckView::default()
                    },
                ],
            }],
            omitted: 2,
        },
        answered: vec![AnsweredView {
            interrupt_id: hostile(),
            title: hostile(),
            node_id: hostile(),
            outcome: Some(hostile()),
            at: Some(hostile()),
            votes: vec![VoteView {
                claimed_by: None,
                voter: hostile(),
                delegate: Some(hostile()),
                action: hostile(),
                at: hostile(),
                feedback: Some(hostile()),
            }],
            edit: Some((
                serde_json::json!(hostile()),
                serde_json::json!({"a": hostile()}),
            )),
        }],
        run_tree: Some(RunTreeView {
            run_id: hostile(),
            workflow_id: hostile(),
            status: hostile(),
            is_current: false,
            children: vec![RunTreeView {
                is_current: true,
                ..RunTreeView::default()
            }],
            more: 1,
        }),
        csrf: hostile(),
    }
}

fn run_list() -> RunListView {
    RunListView {
        rows: vec![RunListRow {
            run_id: hostile(),
            workflow_id: hostile(),
            status: hostile(),
            created_at: hostile(),
            ended_at: None,
            parent_run_id: Some(hostile()),
            error_code: Some(hostile()),
        }],
        filter: RunListFilter {
            status: Some(hostile()),
            workflow_id: Some(hostile()),
        },
        statuses: vec!["running", "completed"],
        workflows: vec!["known".to_owned()],
        next_cursor: Some(hostile()),
        live: true,
    }
}

fn webhook() -> WebhookPageView {
    WebhookPageView {
        webhook: WebhookRow {
            webhook_id: hostile(),
            url: hostile(),
            state: hostile(),
            events: vec![hostile()],
            tags: vec![hostile()],
            created_at: hostile(),
            paused_until: Some(hostile()),
            consecutive_failures: 3,
            dropped: 1,
        },
        secret_fingerprint: hostile(),
        deliveries: vec![WebhookDeliveryRow {
            number: 1,
            event_type: hostile(),
            run_id: hostile(),
            sequence: 7,
            state: hostile(),
            attempts: 2,
            created_at: hostile(),
            next_attempt_at: Some(hostile()),
            outcome: Some(hostile()),
            can_redeliver: true,
        }],
        next_cursor: Some(hostile()),
        csrf: hostile(),
    }
}

fn pages() -> Vec<(&'static str, String)> {
    let chrome = chrome();
    let inbox_with = |card| inbox_page(&chrome, &inbox(card));
    let workflows = WorkflowListView {
        rows: vec![WorkflowRow {
            id: hostile(),
            name: hostile(),
            version: hostile(),
            node_count: 2,
        }],
        csrf: hostile(),
    };
    let workflow = WorkflowPageView {
        id: hostile(),
        name: hostile(),
        version: hostile(),
        graph: graph(),
        source_json: hostile(),
        csrf: hostile(),
    };
    let mut all = vec![
        ("login", login_page(&chrome, Some(HOSTILE))),
        ("error", error_page(&chrome, 404, HOSTILE, HOSTILE, HOSTILE)),
        ("runs", run_list_page(&chrome, &run_list())),
        ("no runs", run_list_page(&chrome, &RunListView::default())),
        ("run", run_page(&chrome, &run())),
        ("bare run", run_page(&chrome, &RunPageView::default())),
        ("workflows", workflow_list_page(&chrome, &workflows)),
        (
            "no workflows",
            workflow_list_page(&chrome, &WorkflowListView::default()),
        ),
        ("workflow", workflow_page(&chrome, &workflow)),
        ("inbox", inbox_with(None)),
        ("empty inbox", inbox_page(&chrome, &InboxView::default())),
        ("approval", inbox_with(Some(question("approval")))),
        ("clarification", inbox_with(Some(question("clarification")))),
        ("custom", inbox_with(Some(question("custom")))),
        ("vendor kind", inbox_with(Some(question(HOSTILE)))),
        ("decided", inbox_with(Some(decided()))),
        (
            "webhooks",
            webhook_list_page(
                &chrome,
                &WebhookListView {
                    rows: vec![webhook().webhook],
                },
            ),
        ),
        (
            "no webhooks",
            webhook_list_page(&chrome, &WebhookListView::default()),
        ),
        ("webhook", webhook_page(&chrome, &webhook())),
        (
            "bare webhook",
            webhook_page(&chrome, &WebhookPageView::default()),
        ),
    ];
    all.extend(history::pages(&chrome));
    all.extend(conversations::pages(&chrome));
    all.extend(schedules::pages(&chrome));
    all
}

fn pages_and_fragments() -> Vec<(&'static str, String)> {
    let mut all = pages();
    all.push(("rows fragment", run_list_rows(&run_list())));
    all.push(("state fragment", run_state_fragment(&run())));
    all.push(("inbox rows", inbox_rows(&inbox(None))));
    all.push(("card", inbox_card(&question("approval"))));
    all.push(("moment parts", history_fragment(&history::history_view())));
    all.push(("graph", workflow_svg(&graph())));
    all.extend(conversations::fragments());
    all.extend(schedules::fragments());
    all
}

#[test]
fn every_page_has_the_common_layout() {
    for (name, html) in pages() {
        let tags = tags(&html);
        let count = |tag: &str| tags.iter().filter(|t| t.name == tag).count();
        assert!(html.starts_with("<!DOCTYPE html>"), "{name}");
        assert!(html.contains(" · Tandem</title>"), "{name}");
        assert_eq!((count("main"), count("h1")), (1, 1), "{name}");
        let first_link = tags.iter().find(|t| t.name == "a").expect("a link");
        assert_eq!(first_link.attribute("href"), Some("#main"), "{name}");
        assert!(html.contains("aria-live=\"polite\""), "{name}");
        assert!(
            tags.iter()
                .any(|t| t.name == "html" && t.attribute("lang") == Some("en")),
            "{name}"
        );
    }
}

#[test]
fn nothing_needs_an_inline_script_or_style() {
    for (name, html) in pages_and_fragments() {
        for tag in tags(&html) {
            assert_ne!(tag.name, "style", "{name}");
            assert_ne!(tag.name, "img", "{name}: hostile text became an element");
            if tag.name == "script" {
                let src = tag.attribute("src").expect("a script has a source");
                let ours = [
                    "console.js",
                    "inbox.js",
                    "history.js",
                    "desk.js",
                    "compared.js",
                ];
                let known = |file| src.starts_with(&format!("/console/assets/{file}?v="));
                assert!(ours.into_iter().any(known), "{name}: {src}");
            }
            for (attribute, value) in &tag.attributes {
                assert_ne!(attribute, "style", "{name}");
                assert!(!attribute.starts_with("on"), "{name}: {attribute}");
                assert!(!value.starts_with("javascript:"), "{name}");
            }
        }
    }
}

#[test]
fn every_link_stays_in_the_console() {
    for (name, html) in pages_and_fragments() {
        for tag in tags(&html) {
            for attribute in [
                "href",
                "action",
                "src",
                "data-live-run",
                "data-live-rows",
                "data-live-inbox",
                "data-at",
            ] {
                let Some(url) = tag.attribute(attribute) else {
                    continue;
                };
                assert!(
                    url == "#main" || url.starts_with("/console/"),
                    "{name}: {url}"
                );
                assert!(url.split('/').all(|s| s != ".."), "{name}: {url} climbs");
                assert!(!url.contains(['<', '"', '\'', ' ']), "{name}: {url}");
            }
        }
    }
}

#[test]
fn ids_are_unique_and_every_field_is_labelled() {
    for (name, html) in pages() {
        let tags = tags(&html);
        let mut ids: Vec<&str> = tags.iter().filter_map(|t| t.attribute("id")).collect();
        let labels: Vec<&str> = tags.iter().filter_map(|t| t.attribute("for")).collect();
        for tag in &tags {
            let field = matches!(tag.name.as_str(), "input" | "select" | "textarea");
            if field && tag.attribute("type") != Some("hidden") {
                let id = tag.attribute("id").expect("a field has an id");
                assert!(labels.contains(&id), "{name}: {id} has no label");
            }
        }
        ids.sort_unstable();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "{name}: repeated ids in {ids:?}");
    }
}

#[test]
fn every_post_to_a_run_or_workflow_carries_the_token() {
    for (name, html) in pages().into_iter().filter(|(name, _)| *name != "login") {
        let tags = tags(&html);
        for (i, tag) in tags.iter().enumerate() {
            if tag.name == "form" && tag.attribute("method") == Some("post") {
                assert_eq!(tags[i + 1].attribute("name"), Some("csrf"), "{name}");
            }
        }
    }
}

#[test]
fn buttons_are_shown_only_for_allowed_actions() {
    let closed = run_page(&chrome(), &RunPageView::default());
    let open = run_page(&chrome(), &run());
    for verb in ["cancel", "pause", "resume"] {
        let id = format!("id=\"action-{verb}\"");
        assert!(open.contains(&id) && !closed.contains(&id), "{verb}");
    }
}

#[test]
fn navigation_is_hidden_before_sign_in() {
    let stranger = Chrome::default();
    assert!(!login_page(&stranger, None).contains("<nav"));
    assert!(run_list_page(&chrome(), &run_list()).contains("aria-current=\"page\">Runs"));
}

#[test]
fn pages_contain_the_elements_the_script_uses() {
    let run = run_page(&chrome(), &run());
    let script = std::str::from_utf8(asset("console.js").unwrap().body).unwrap();
    let ids = tags(&run);
    let ids: Vec<&str> = ids.iter().filter_map(|t| t.attribute("id")).collect();
    for piece in script.split("byId('").skip(1) {
        let id = piece.split('\'').next().unwrap();
        assert!(ids.contains(&id), "console.js looks for #{id}");
    }
    assert!(run.contains("data-after=\"7\""));
    assert!(run.contains("<tr data-seq=\"7\""));
}

#[test]
fn state_fragment_has_the_same_parts_as_the_page() {
    let parts = |html: &str| -> Vec<String> {
        let tags = tags(html);
        let parts = tags.iter().filter_map(|t| t.attribute("data-part"));
        parts.map(str::to_owned).collect()
    };
    assert_eq!(
        parts(&run_state_fragment(&run())),
        parts(&run_page(&chrome(), &run()))
    );
}

#[test]
fn only_the_newest_run_page_is_live() {
    let mut view = run_list();
    view.filter = RunListFilter {
        status: Some("running".to_owned()),
        workflow_id: None,
    };
    let live = "data-live-rows=\"/console/runs/live?status=running\"";
    assert!(run_list_page(&chrome(), &view).contains(live));
    view.live = false;
    assert!(!run_list_page(&chrome(), &view).contains("data-live-rows"));
}

#[test]
fn live_messages_are_one_line_of_json() {
    for data in [
        event_json(&event()),
        state_json(&run()),
        rows_json(&run_list()),
        inbox_rows_json(&inbox(None)),
        inbox_card_json(&question("approval")),
    ] {
        assert!(!data.contains(['\n', '\r']));
        serde_json::from_str::<serde_json::Value>(&data).expect("valid JSON");
    }
    let sent: serde_json::Value = serde_json::from_str(&event_json(&event())).unwrap();
    assert_eq!(sent["sequence"], 7);
    assert_eq!(sent["nodeId"], HOSTILE);
    assert_eq!(sent["payload"]["text"], "</template></pre><script>\n");
}

#[test]
fn a_payload_that_is_not_json_is_sent_as_text() {
    let odd = EventRow {
        payload_json: "not json".to_owned(),
        ..EventRow::default()
    };
    let sent: serde_json::Value = serde_json::from_str(&event_json(&odd)).unwrap();
    assert_eq!(sent["payload"], "not json");
    assert!(sent.get("nodeId").is_none());
}

#[test]
fn assets_are_typed_and_tagged() {
    let css = asset("console.css").unwrap();
    let js = asset("console.js").unwrap();
    let icon = asset("icon.svg").unwrap();
    assert_eq!(css.content_type, "text/css; charset=utf-8");
    assert_eq!(js.content_type, "text/javascript; charset=utf-8");
    assert_eq!(icon.content_type, "image/svg+xml");
    assert_ne!(css.etag, js.etag);
    assert!(css.etag.starts_with('"') && css.etag.ends_with('"'));
    assert_eq!(asset("../Cargo.toml"), None);
    assert_eq!(asset(""), None);
}

#[test]
fn dot_segment_ids_are_encoded_twice() {
    assert_eq!(links::run(".."), "/console/runs/%252E%252E");
    assert_eq!(links::run("a.b-c"), "/console/runs/a.b-c");
    assert_eq!(links::workflow("a/b c"), "/console/workflows/a%2Fb%20c");
}
