//! Every console URL, in one place.
//!
//! Ids come from workflow authors, so they are percent-encoded here before they
//! enter a path or a query. Escaping for HTML is a separate step, done by maud.

use crate::desk::EscalationSelection;
use crate::inbox::InboxSelection;
use crate::run_list::RunListFilter;
use crate::schedules::ScheduleSelection;

pub(crate) const INBOX: &str = "/console/inbox";
pub(crate) const CONVERSATIONS: &str = "/console/conversations";
pub(crate) const ESCALATIONS: &str = "/console/escalations";
pub(crate) const SCHEDULES: &str = "/console/schedules";
pub(crate) const RUNS: &str = "/console/runs";
pub(crate) const WORKFLOWS: &str = "/console/workflows";
pub(crate) const WEBHOOKS: &str = "/console/webhooks";
pub(crate) const LOGIN: &str = "/console/login";
pub(crate) const LOGOUT: &str = "/console/logout";

pub(crate) fn run(run_id: &str) -> String {
    format!("{RUNS}/{}", encode(run_id))
}

/// Where a button of the run page posts: `verb` is `cancel`, `pause` or `resume`.
pub(crate) fn run_action(run_id: &str, verb: &str) -> String {
    format!("{RUNS}/{}/{verb}", encode(run_id))
}

/// The run's live stream, without its cursor: the script adds `?after=` because the cursor moves
/// while the page is open.
pub(crate) fn run_live(run_id: &str) -> String {
    format!("{RUNS}/{}/live", encode(run_id))
}

/// The history of a run; without an event, the newest.
pub(crate) fn history(run_id: &str) -> String {
    run_action(run_id, "history")
}

/// The run as it was after one of its events.
pub(crate) fn history_at(run_id: &str, seq: u64) -> String {
    format!("{}{seq}", history_at_prefix(run_id))
}

/// The URL that a sequence is appended to, also by the script.
pub(crate) fn history_at_prefix(run_id: &str) -> String {
    format!("{RUNS}/{}/at/", encode(run_id))
}

/// The comparison of two runs.
pub(crate) fn compare(a: &str, b: &str) -> String {
    format!("{RUNS}/{}/diff/{}", encode(a), encode(b))
}

pub(crate) fn workflow(workflow_id: &str) -> String {
    format!("{WORKFLOWS}/{}", encode(workflow_id))
}

pub(crate) fn workflow_runs(workflow_id: &str) -> String {
    format!("{WORKFLOWS}/{}/runs", encode(workflow_id))
}

pub(crate) fn webhook(webhook_id: &str) -> String {
    format!("{WEBHOOKS}/{}", encode(webhook_id))
}

pub(crate) fn webhook_deliveries(webhook_id: &str, cursor: &str) -> String {
    format!("{}?cursor={}", webhook(webhook_id), encode(cursor))
}

pub(crate) fn webhook_redeliver(webhook_id: &str, number: u64) -> String {
    format!("{}/deliveries/{number}", webhook(webhook_id))
}

pub(crate) fn runs_filtered(filter: &RunListFilter, cursor: Option<&str>) -> String {
    with_query(RUNS, filter, cursor)
}

pub(crate) fn runs_live(filter: &RunListFilter) -> String {
    with_query("/console/runs/live", filter, None)
}

/// The list of conversations; of one agent, if given.
pub(crate) fn conversations(agent: Option<&str>, with_ended: bool, cursor: Option<&str>) -> String {
    let ended = with_ended.then_some("true");
    query(
        CONVERSATIONS,
        &[("agent", agent), ("ended", ended), ("cursor", cursor)],
    )
}

pub(crate) fn conversations_live(agent: Option<&str>, with_ended: bool) -> String {
    let ended = with_ended.then_some("true");
    query(
        "/console/conversations/live",
        &[("agent", agent), ("ended", ended)],
    )
}

pub(crate) fn conversation(session_id: &str) -> String {
    format!("{CONVERSATIONS}/{}", encode(session_id))
}

pub(crate) fn conversation_live(session_id: &str) -> String {
    format!("{}/live", conversation(session_id))
}

/// Where the button that ends a conversation posts.
pub(crate) fn conversation_end(session_id: &str) -> String {
    format!("{}/end", conversation(session_id))
}

/// Where the button that takes a conversation over posts.
pub(crate) fn conversation_takeover(session_id: &str) -> String {
    format!("{}/takeover", conversation(session_id))
}

/// Where a text to the user of a conversation posts.
pub(crate) fn conversation_takeover_messages(session_id: &str) -> String {
    format!("{}/takeover/messages", conversation(session_id))
}

/// Where the button that hands a conversation back posts.
pub(crate) fn conversation_handback(session_id: &str) -> String {
    format!("{}/handback", conversation(session_id))
}

/// Where the button that compares answers posts.
pub(crate) fn conversation_compare_answers(session_id: &str) -> String {
    format!("{}/compare-answers", conversation(session_id))
}

/// The list of schedules.
pub(crate) fn schedules(selection: &ScheduleSelection, cursor: Option<&str>) -> String {
    selected_schedules(SCHEDULES, selection, cursor)
}

pub(crate) fn schedules_live(selection: &ScheduleSelection) -> String {
    selected_schedules("/console/schedules/live", selection, None)
}

pub(crate) fn schedules_of_agent(agent_id: &str) -> String {
    query(SCHEDULES, &[("agent", Some(agent_id))])
}

fn selected_schedules(path: &str, selection: &ScheduleSelection, cursor: Option<&str>) -> String {
    query(
        path,
        &[
            ("agent", selection.agent.as_deref()),
            ("status", selection.status.as_deref()),
            ("cursor", cursor),
        ],
    )
}

pub(crate) fn schedule(id: &str) -> String {
    format!("{SCHEDULES}/{}", encode(id))
}

/// A schedule with earlier runs.
pub(crate) fn schedule_page(id: &str, cursor: &str) -> String {
    query(&schedule(id), &[("cursor", Some(cursor))])
}

pub(crate) fn schedule_live(id: &str) -> String {
    format!("{}/live", schedule(id))
}

/// Where the buttons of a schedule post: `verb` is `pause`, `resume` or `cancel`.
pub(crate) fn schedule_action(id: &str, verb: &str) -> String {
    format!("{}/{verb}", schedule(id))
}

/// One occurrence of a schedule.
pub(crate) fn schedule_run(id: &str) -> String {
    format!("/console/schedule-runs/{}", encode(id))
}

/// The same with later recipients.
pub(crate) fn schedule_run_page(id: &str, cursor: &str) -> String {
    query(&schedule_run(id), &[("cursor", Some(cursor))])
}

/// The list of open escalations.
pub(crate) fn escalations(selection: &EscalationSelection, cursor: Option<&str>) -> String {
    selected_escalations(ESCALATIONS, selection, cursor)
}

pub(crate) fn escalations_live(selection: &EscalationSelection) -> String {
    selected_escalations("/console/escalations/live", selection, None)
}

fn selected_escalations(
    path: &str,
    selection: &EscalationSelection,
    cursor: Option<&str>,
) -> String {
    query(
        path,
        &[
            ("queue", selection.queue.as_deref()),
            ("assignee", selection.assignee.as_deref()),
            ("unclaimed", selection.unclaimed.then_some("true")),
            ("cursor", cursor),
        ],
    )
}

/// Where the buttons that say whose work an escalation is post.
pub(crate) fn escalation(id: &str) -> String {
    format!("{ESCALATIONS}/{}", encode(id))
}

/// Where the button that stops a bridge posts.
pub(crate) fn bridge_stop(id: &str) -> String {
    format!("/console/proxies/{}/stop", encode(id))
}

/// Where what is written as the desk of a bridge is posted.
pub(crate) fn bridge_input(id: &str) -> String {
    format!("/console/proxies/{}/input", encode(id))
}

/// What passed over a bridge, for those whom a token gives the right.
pub(crate) fn bridge_messages(id: &str) -> String {
    format!("/console/proxies/{}/messages", encode(id))
}

/// The list with a selection, without a question.
pub(crate) fn inbox(selection: &InboxSelection) -> String {
    selected(INBOX, selection, None)
}

/// The list's next page.
pub(crate) fn inbox_after(selection: &InboxSelection, cursor: &str) -> String {
    let next = InboxSelection {
        cursor: Some(cursor.to_owned()),
        ..selection.clone()
    };
    inbox(&next)
}

/// One question beside the list.
pub(crate) fn question(id: &str, selection: &InboxSelection) -> String {
    selected(&format!("{INBOX}/{}", encode(id)), selection, None)
}

/// Where the answer to a question is posted.
pub(crate) fn answer(id: &str, selection: &InboxSelection) -> String {
    selected(&format!("{INBOX}/{}/answer", encode(id)), selection, None)
}

pub(crate) fn inbox_live(selection: &InboxSelection, item: Option<&str>) -> String {
    selected("/console/inbox/live", selection, item)
}

fn selected(path: &str, selection: &InboxSelection, item: Option<&str>) -> String {
    query(
        path,
        &[
            ("kind", selection.kind.as_deref()),
            ("group", selection.group.as_deref()),
            ("sort", selection.sort.as_deref()),
            ("cursor", selection.cursor.as_deref()),
            ("item", item),
        ],
    )
}

fn with_query(path: &str, filter: &RunListFilter, cursor: Option<&str>) -> String {
    let pairs = [
        ("status", filter.status.as_deref()),
        ("workflow", filter.workflow_id.as_deref()),
        ("cursor", cursor),
    ];
    query(path, &pairs)
}

fn query(path: &str, pairs: &[(&str, Option<&str>)]) -> String {
    let query: Vec<String> = pairs
        .iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", encode((*value)?))))
        .collect();
    if query.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", query.join("&"))
    }
}

/// The UI channel of an agent.
pub(crate) fn ui_channel(agent_id: &str) -> String {
    format!("/v1/host/tandem/agents/{}/ui", encode(agent_id))
}

/// RFC 3986 unreserved characters stay; everything else becomes `%XX`.
///
/// A browser resolves the segments `.` and `..` even when they are written `%2E`, so such an id
/// cannot reach the server unchanged. It is encoded twice: the link then gets "not found" and never
/// another page.
fn encode(text: &str) -> String {
    if matches!(text, "." | "..") {
        return text.replace('.', "%252E");
    }
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
