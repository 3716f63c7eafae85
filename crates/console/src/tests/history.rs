//! The history pages, filled with hostile text.

use super::scan::tags;
use super::{HOSTILE, chrome, event, hostile, run};
use crate::*;

pub(super) fn history_view() -> HistoryPageView {
    HistoryPageView {
        state: run(),
        seq: 7,
        last: 9,
        around: vec![event()],
        channels_json: Some(hostile()),
        nodes: vec![ReachedNode {
            id: hostile(),
            state: NodeState::Failed,
            attempt: 2,
            error: Some((hostile(), hostile())),
        }],
        nodes_omitted: 1,
        questions: vec![
            OpenQuestion {
                node_id: hostile(),
                kind: hostile(),
                title: hostile(),
                interrupt_id: Some(hostile()),
            },
            OpenQuestion::default(),
        ],
        memory: MemoryPanelView {
            entries: vec![MemoryEntryRow {
                key: hostile(),
                memory_ref: hostile(),
                value_json: hostile(),
                tags: vec![hostile()],
                written_at: hostile(),
                expires_at: Some(hostile()),
            }],
            omitted: 4,
            lost: false,
        },
        fork: Some(ForkOffer {
            from_seq: 8,
            csrf: hostile(),
        }),
    }
}

pub(super) fn comparison() -> ComparePageView {
    let side = || ComparedRun {
        run_id: hostile(),
        workflow_id: hostile(),
        status: hostile(),
        forked_from: Some(origin()),
    };
    let difference = |op: &str, a: bool, b: bool| EventDifference {
        seq: 7,
        op: op.to_owned(),
        a: a.then(event),
        b: b.then(event),
    };
    ComparePageView {
        a: side(),
        b: side(),
        diverged_at: Some(7),
        events: vec![
            difference("changed", true, true),
            difference("added", false, true),
            difference("removed", true, false),
            difference(HOSTILE, true, true),
        ],
        more_events: true,
        is_unfinished: true,
        state: vec![
            StateDifference {
                part: hostile(),
                name: Some(hostile()),
                a: Some(hostile()),
                b: None,
            },
            StateDifference {
                part: "status".to_owned(),
                b: Some(hostile()),
                ..StateDifference::default()
            },
        ],
    }
}

pub(super) fn origin() -> ForkOrigin {
    ForkOrigin {
        run_id: hostile(),
        from_seq: 4,
        mode: hostile(),
    }
}

/// Each page with all optional content and with none.
pub(super) fn pages(chrome: &Chrome) -> Vec<(&'static str, String)> {
    vec![
        ("moment", history_page(chrome, &history_view())),
        (
            "bare moment",
            history_page(chrome, &HistoryPageView::default()),
        ),
        ("comparison", compare_page(chrome, &comparison())),
        (
            "nothing differs",
            compare_page(chrome, &ComparePageView::default()),
        ),
    ]
}

fn parts(html: &str) -> Vec<String> {
    let tags = tags(html);
    let named = tags.iter().filter_map(|t| t.attribute("data-part"));
    let mut parts: Vec<String> = named.map(str::to_owned).collect();
    parts.sort_unstable();
    parts
}

#[test]
fn history_fragment_has_every_part_of_the_page() {
    for view in [history_view(), HistoryPageView::default()] {
        assert_eq!(
            parts(&history_fragment(&view)),
            parts(&history_page(&chrome(), &view))
        );
    }
}

#[test]
fn history_page_contains_the_elements_the_script_uses() {
    let page = history_page(&chrome(), &history_view());
    let script = std::str::from_utf8(asset("history.js").unwrap().body).unwrap();
    let tags = tags(&page);
    let ids: Vec<&str> = tags.iter().filter_map(|t| t.attribute("id")).collect();
    for piece in script.split("byId('").skip(1) {
        let id = piece.split('\'').next().unwrap();
        assert!(ids.contains(&id), "history.js looks for #{id}");
    }
    let slider = tags
        .iter()
        .find(|t| t.attribute("type") == Some("range"))
        .unwrap();
    assert_eq!(slider.attribute("max"), Some("9"));
    assert_eq!(slider.attribute("value"), Some("7"));
}

#[test]
fn step_links_stay_within_the_log() {
    let at = |seq, last| HistoryPageView {
        seq,
        last,
        ..HistoryPageView::default()
    };
    let links = |view: &HistoryPageView| -> Vec<u64> {
        let page = history_page(&chrome(), view);
        let found = tags(&page);
        let found = found.iter().filter_map(|t| t.attribute("data-moment"));
        found.map(|text| text.parse().unwrap()).collect()
    };
    assert_eq!(links(&at(3, 9)), [0, 2, 4, 9]);
    assert_eq!(links(&at(0, 9)), [1, 9]);
    assert_eq!(links(&at(9, 9)), [0, 8]);
    assert_eq!(links(&at(0, 0)), [] as [u64; 0]);
}

#[test]
fn fork_form_needs_permission() {
    let mut view = history_view();
    let page = history_page(&chrome(), &view);
    assert!(page.contains("name=\"fromSeq\" value=\"8\"") && page.contains("events 0 to 7"));
    assert!(!page.contains("happens again"));
    view.fork = None;
    assert!(!history_page(&chrome(), &view).contains("fromSeq"));
}

#[test]
fn fork_page_links_to_its_source() {
    let mut view = RunPageView {
        run_id: "run-b".to_owned(),
        ..RunPageView::default()
    };
    let own = run_page(&chrome(), &view);
    assert!(own.contains("/console/runs/run-b/history") && !own.contains("Forked from"));
    view.forked_from = Some(ForkOrigin {
        run_id: "run-a".to_owned(),
        from_seq: 4,
        mode: "branch".to_owned(),
    });
    let fork = run_page(&chrome(), &view);
    for part in [
        "/console/runs/run-a\"",
        "/console/runs/run-a/at/4\"",
        "/console/runs/run-a/diff/run-b\"",
    ] {
        assert!(fork.contains(part), "{part}");
    }
}

#[test]
fn compare_page_names_the_side_without_a_value() {
    let page = compare_page(&chrome(), &comparison());
    assert!(page.contains("Not in A.") && page.contains("Not in B."));
    assert!(page.contains("Only the first 4 differing events"));
    let same = compare_page(&chrome(), &ComparePageView::default());
    assert!(same.contains("The runs do not differ."));
}
