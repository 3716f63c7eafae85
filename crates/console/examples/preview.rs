//! Writes sample pages to a directory, to look at the console without a host:
//!
//! `cargo run -p tandem-console --example preview -- target/console-preview`
//!
//! The pages refer to `/console/assets/…`; serve the directory with any static file
//! server and open `/console/runs.html`.

use std::path::Path;
use std::{env, fs, io};

use tandem_console::{
    CardView, Chrome, EventRow, GraphEdge, GraphNode, GraphView, InboxRow, InboxView, NodeState,
    RunListFilter, RunListRow, RunListView, RunPageView, WorkflowListView, WorkflowPageView,
    WorkflowRow, asset, error_page, event_json, inbox_page, login_page, rows_json, run_list_page,
    run_page, state_json, workflow_list_page, workflow_page,
};

const RUN_ID: &str = "run_01JD8Q4ZK3V7M2T9X5B6N8C0RA";

fn main() -> io::Result<()> {
    let out = env::args()
        .nth(1)
        .unwrap_or_else(|| "target/console-preview".to_owned());
    let root = Path::new(&out).join("console");
    fs::create_dir_all(root.join("assets"))?;
    for name in [
        "console.css",
        "console.js",
        "inbox.css",
        "inbox.js",
        "history.css",
        "history.js",
        "icon.svg",
    ] {
        let file = asset(name).expect("the console's own file");
        fs::write(root.join("assets").join(name), file.body)?;
    }
    let chrome = Chrome {
        signed_in_as: Some("ada@example.com".to_owned()),
        tenant: Some("acme".to_owned()),
        csrf: Some("token".to_owned()),
        version: "0.1.0",
    };
    let page = |name: &str, html: String| fs::write(root.join(name), html);
    page("runs.html", run_list_page(&chrome, &run_list()))?;
    page("run.html", run_page(&chrome, &run()))?;
    page("inbox.html", inbox_page(&chrome, &inbox()))?;
    page("workflows.html", workflow_list_page(&chrome, &workflows()))?;
    page("workflow.html", workflow_page(&chrome, &workflow()))?;
    page("wide.html", workflow_page(&chrome, &wide()))?;
    page(
        "login.html",
        login_page(
            &Chrome {
                version: "0.1.0",
                ..Chrome::default()
            },
            Some("That key is not known here."),
        ),
    )?;
    page(
        "error.html",
        error_page(
            &chrome,
            404,
            "No such run",
            "There is no run with this id in tenant acme.",
            "Check the id, or find the run in the list.",
        ),
    )?;
    page("rows.json", rows_json(&run_list()))?;
    page("state.json", state_json(&finished()))?;
    page("event.json", event_json(&late_event()))
}

fn inbox() -> InboxView {
    let data = serde_json::json!({
        "description": "The machine arrived broken.",
        "requiredApprovals": 2,
        "artifactData": {"amount": 129, "currency": "EUR", "tags": ["broken"], "keepItem": false},
        "artifactSchema": {"properties": {"amount": {"type": "number", "maximum": 500}}},
    });
    let card = CardView {
        id: "int-1".to_owned(),
        kind: "approval".to_owned(),
        title: "Refund 129 EUR?".to_owned(),
        run_id: RUN_ID.to_owned(),
        run_status: "waiting-approval".to_owned(),
        workflow_id: "refund".to_owned(),
        node_id: "approve".to_owned(),
        created_at: "2025-11-15T18:12:00Z".to_owned(),
        actions: ["accept", "reject", "refine", "edit-accept", "ask"]
            .map(str::to_owned)
            .into(),
        data,
        ..CardView::default()
    };
    let row = |n: u32, kind: &str, title: &str| InboxRow {
        expired: false,
        id: format!("int-{n}"),
        kind: kind.to_owned(),
        title: title.to_owned(),
        workflow_id: "refund".to_owned(),
        node_id: "approve".to_owned(),
        created_at: "2025-11-15T18:12:00Z".to_owned(),
        deadline: text("2035-11-15T18:12:00Z"),
        priority: 7,
        groups: vec!["finance".to_owned()],
        votes: (n == 1).then_some((0, 2)),
    };
    InboxView {
        rows: vec![
            row(1, "approval", "Refund 129 EUR?"),
            row(2, "clarification", "Which address?"),
        ],
        chosen: text("int-1"),
        card: Some(card),
        ..InboxView::default()
    }
}

fn text(s: &str) -> Option<String> {
    Some(s.to_owned())
}

fn run_list() -> RunListView {
    let row = |n: usize, workflow: &str, status: &str, minutes: usize| RunListRow {
        run_id: format!("run_01JD8Q4ZK3V7M2T9X5B6N8C0R{n}"),
        workflow_id: workflow.to_owned(),
        status: status.to_owned(),
        created_at: format!("2025-11-15T18:{minutes:02}:12.402Z"),
        ended_at: matches!(status, "completed" | "failed" | "cancelled")
            .then(|| format!("2025-11-15T18:{:02}:41.118Z", minutes + n % 3)),
        parent_run_id: (n == 2).then(|| RUN_ID.to_owned()),
        error_code: (status == "failed").then(|| "node_timeout".to_owned()),
    };
    RunListView {
        rows: vec![
            row(0, "refund-approval", "running", 55),
            row(1, "refund-approval", "waiting-approval", 54),
            row(2, "score-customer", "completed", 51),
            row(3, "nightly-ledger", "failed", 40),
            row(4, "refund-approval", "completed", 32),
            row(5, "onboard-supplier-with-a-rather-long-id", "paused", 20),
            row(6, "refund-approval", "cancelled", 11),
            row(7, "score-customer", "pending", 2),
        ],
        filter: RunListFilter::default(),
        statuses: vec![
            "pending",
            "running",
            "paused",
            "waiting-approval",
            "completed",
            "failed",
        ],
        workflows: vec!["refund-approval".to_owned(), "score-customer".to_owned()],
        next_cursor: text("eyJhZnRlciI6MTB9"),
        live: true,
    }
}

fn refund_graph(state_of: impl Fn(&str) -> NodeState) -> GraphView {
    let node = |id: &str, name: &str, type_id: &str| GraphNode {
        id: id.to_owned(),
        name: name.to_owned(),
        type_id: type_id.to_owned(),
        state: state_of(id),
    };
    let edge = |source: &str, target: &str, label: Option<&str>| GraphEdge {
        source: source.to_owned(),
        target: target.to_owned(),
        label: label.map(str::to_owned),
        conditional: label.is_some(),
    };
    GraphView {
        nodes: vec![
            node("receive", "Receive request", "core.start"),
            node("lookup", "Look up the order", "core.http"),
            node("score", "Score the customer's history", "core.subworkflow"),
            node("draft", "Draft an answer", "core.model.chat"),
            node("review", "Reviewer decides", "core.approval"),
            node("pay", "Pay back", "vendor.payments.refund-v2"),
            node("decline", "Decline kindly", "core.model.chat"),
            node("notify", "Notify customer", "core.http"),
        ],
        edges: vec![
            edge("receive", "lookup", None),
            edge("receive", "score", None),
            edge("lookup", "draft", None),
            edge("score", "draft", None),
            edge("lookup", "pay", Some("under 20 €")),
            edge("draft", "review", None),
            edge("review", "pay", Some("approved")),
            edge("review", "decline", Some("rejected")),
            edge("review", "draft", Some("changes asked")),
            edge("pay", "notify", None),
            edge("decline", "notify", None),
        ],
    }
}

fn run() -> RunPageView {
    let kinds: [(&str, Option<&str>); 14] = [
        ("run.created", None),
        ("run.started", None),
        ("node.started", Some("receive")),
        ("node.completed", Some("receive")),
        ("node.started", Some("lookup")),
        ("node.started", Some("score")),
        ("node.failed", Some("lookup")),
        ("node.retry.scheduled", Some("lookup")),
        ("node.completed", Some("score")),
        ("node.completed", Some("lookup")),
        ("node.started", Some("draft")),
        ("node.completed", Some("draft")),
        ("node.started", Some("review")),
        ("interrupt.requested", Some("review")),
    ];
    let events = kinds.iter().enumerate().map(|(i, (kind, node))| EventRow {
        sequence: i as u64,
        at: format!("2025-11-15T18:55:{:02}.{:03}Z", 12 + i / 2, 402 + 37 * i),
        kind: (*kind).to_owned(),
        node_id: node.map(str::to_owned),
        payload_json: "{\n  \"attempt\": 1,\n  \"output\": {\n    \"orderId\": \"A-1038\",\n    \"amount\": 48.5,\n    \"eligible\": true,\n    \"note\": null\n  }\n}".to_owned(),
    });
    RunPageView {
        run_id: RUN_ID.to_owned(),
        workflow_id: "refund-approval".to_owned(),
        status: "waiting-approval".to_owned(),
        created_at: "2025-11-15T18:55:12.402Z".to_owned(),
        started_at: text("2025-11-15T18:55:12.461Z"),
        parent_run_id: text("run_01JD8Q3MZX0000000000000000"),
        graph: refund_graph(|id| match id {
            "review" => NodeState::Suspended,
            "pay" => NodeState::Running,
            "decline" => NodeState::Skipped,
            "notify" => NodeState::Pending,
            _ => NodeState::Completed,
        }),
        events: events.collect(),
        variables_json: "{\n  \"order\": {\n    \"id\": \"A-1038\",\n    \"total\": 48.5\n  },\n  \"reviewers\": [\n    \"grace\",\n    \"linus\"\n  ],\n  \"score\": 0.82\n}".to_owned(),
        last_sequence: Some(13),
        can_cancel: true,
        can_pause: true,
        child_runs: vec![(
            "run_01JD8Q50CHILD00000000000000".to_owned(),
            "completed".to_owned(),
        )],
        csrf: "sample".to_owned(),
        ..RunPageView::default()
    }
}

fn late_event() -> EventRow {
    EventRow {
        sequence: 14,
        at: "2025-11-15T18:56:40.007Z".to_owned(),
        kind: "node.failed".to_owned(),
        node_id: text("pay"),
        payload_json: "{\"code\": \"card_closed\", \"html\": \"<b>not bold</b>\"}".to_owned(),
    }
}

fn finished() -> RunPageView {
    RunPageView {
        status: "failed".to_owned(),
        ended_at: text("2025-11-15T18:56:40.120Z"),
        error: Some((
            "card_closed".to_owned(),
            "The card this order was paid with has been closed.".to_owned(),
        )),
        graph: refund_graph(|id| match id {
            "pay" => NodeState::Failed,
            "decline" => NodeState::Skipped,
            "notify" => NodeState::Cancelled,
            _ => NodeState::Completed,
        }),
        can_cancel: false,
        can_pause: false,
        ..run()
    }
}

fn workflows() -> WorkflowListView {
    let row = |id: &str, name: &str, node_count| WorkflowRow {
        id: id.to_owned(),
        name: name.to_owned(),
        version: "3".to_owned(),
        node_count,
    };
    WorkflowListView {
        rows: vec![
            row("refund-approval", "Refund approval", 8),
            row("score-customer", "Score a customer", 1),
            row("nightly-ledger", "Nightly ledger", 23),
        ],
        csrf: "sample".to_owned(),
    }
}

fn workflow() -> WorkflowPageView {
    WorkflowPageView {
        id: "refund-approval".to_owned(),
        name: "Refund approval".to_owned(),
        version: "3".to_owned(),
        graph: refund_graph(|_| NodeState::Defined),
        source_json: "{\n  \"id\": \"refund-approval\",\n  \"version\": 3,\n  \"nodes\": []\n}"
            .to_owned(),
        csrf: "sample".to_owned(),
    }
}

/// A difficult graph: a wide fan, long edges, loops, a node that repeats itself, a second component
/// and isolated nodes.
fn wide() -> WorkflowPageView {
    let ids = (0..26).map(|i| format!("n{i}"));
    let pairs = [
        (0, 1),
        (0, 2),
        (0, 3),
        (0, 4),
        (0, 5),
        (0, 6),
        (1, 7),
        (2, 7),
        (3, 8),
        (4, 8),
        (5, 9),
        (6, 9),
        (7, 10),
        (8, 10),
        (9, 11),
        (10, 12),
        (11, 12),
        (0, 12),
        (3, 12),
        (12, 7),
        (8, 8),
        (11, 5),
        (13, 14),
        (14, 15),
        (15, 13),
        (13, 15),
        (6, 10),
        (1, 11),
    ];
    WorkflowPageView {
        graph: GraphView {
            nodes: ids
                .map(|id| GraphNode {
                    name: format!("Step {id}"),
                    id,
                    type_id: "core.noop".to_owned(),
                    state: NodeState::Defined,
                })
                .collect(),
            edges: pairs
                .iter()
                .map(|(a, b)| GraphEdge {
                    source: format!("n{a}"),
                    target: format!("n{b}"),
                    ..GraphEdge::default()
                })
                .collect(),
        },
        ..workflow()
    }
}
