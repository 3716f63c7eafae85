//! The inbox as its pages show it. A page of rows costs one page; a card costs the end of its run's
//! log, never all of it.

use super::run_view;
use crate::api::Doors;
use crate::params::Params;
use crate::problem::Problem;
use crate::routes::{actions, events_up_to, find_question, shown, title};
use serde_json::Value;
use tandem_access::{Identity, Scope};
use tandem_console::{
    AskedBack, CardView, Decided, InboxRow, InboxView, NextStep, Selection, VoteView,
};
use tandem_record::{Event, InterruptId, NodeId, Recorded, Seq, Timestamp, Vote};
use tandem_runtime::{
    Ahead, Definition, Fault, InboxPlace, InboxQuery, InboxSort, InterruptRow, RunPosition,
};
use tandem_wire::v1::time::rfc3339;

const ROWS: usize = 30;
/// How far back a card looks for what led to its question.
const LOOK_BACK: u64 = 400;
const SHOWN_EVENTS: usize = 20;

/// What the address asks for.
pub(super) fn selection(params: &Params) -> Result<Selection, Problem> {
    let text = |name: &str| params.get(name).map(str::to_owned);
    let selection = Selection {
        kind: text("kind"),
        group: text("group"),
        sort: text("sort"),
        cursor: text("cursor"),
    };
    query(&selection).map(|_| selection)
}

fn query(selection: &Selection) -> Result<InboxQuery, Problem> {
    let sort = match selection.sort.as_deref() {
        None | Some("deadline") => InboxSort::Deadline,
        Some("priority") => InboxSort::Priority,
        Some("newest") => InboxSort::Newest,
        Some(_) => return Err(Problem::invalid("sort", "is not an order of the inbox")),
    };
    Ok(InboxQuery {
        workspace: None,
        kind: selection.kind.clone(),
        group: selection.group.clone(),
        sort,
        after: selection.cursor.as_deref().map(place).transpose()?,
        limit: ROWS,
    })
}

fn cursor(place: InboxPlace) -> String {
    format!("q{}.{}", place.rank, place.position.0)
}

fn place(cursor: &str) -> Result<InboxPlace, Problem> {
    let parts = cursor.strip_prefix('q').and_then(|c| c.split_once('.'));
    let numbers = parts.and_then(|(rank, position)| {
        Some(InboxPlace {
            rank: rank.parse().ok()?,
            position: RunPosition(position.parse().ok()?),
        })
    });
    numbers.ok_or_else(|| Problem::invalid("cursor", "is not one this host gave out"))
}

/// List, filter and, if one is chosen, the card.
pub(super) async fn whole(
    doors: &Doors,
    reader: &Identity,
    selection: Selection,
    card: Option<CardView>,
) -> Result<InboxView, Problem> {
    let workspace = reader.workspace.as_ref();
    let choices = doors.runtime.inbox_choices(&reader.tenant, workspace);
    let choices = choices.await?;
    let mut view = rows(doors, reader, selection).await?;
    view.kinds = choices.kinds;
    view.groups = choices.groups;
    view.chosen = card.as_ref().map(|card| card.id.clone());
    view.card = card;
    Ok(view)
}

/// The list alone.
pub(super) async fn rows(
    doors: &Doors,
    reader: &Identity,
    selection: Selection,
) -> Result<InboxView, Problem> {
    let query = InboxQuery {
        workspace: reader.workspace.clone(),
        ..query(&selection)?
    };
    let page = doors.runtime.inbox(&reader.tenant, &query).await?;
    let last = page.rows.last().filter(|_| page.more);
    Ok(InboxView {
        next_cursor: last.map(|(place, _)| cursor(*place)),
        rows: page.rows.iter().map(|(_, found)| row(found)).collect(),
        selection,
        ..InboxView::default()
    })
}

fn row(row: &InterruptRow) -> InboxRow {
    let shown = shown(row);
    let data = &shown["data"];
    let needed = data["requiredApprovals"].as_u64().unwrap_or(1);
    let given = votes(&shown)
        .iter()
        .filter(|v| v.action != "reject")
        .count();
    InboxRow {
        id: row.interrupt.to_string(),
        kind: row.kind.clone(),
        title: title(&row.kind, data),
        workflow_id: text(&shown["workflowId"]),
        node_id: row.node.to_string(),
        created_at: rfc3339(row.created_at),
        deadline: row.deadline.map(rfc3339),
        priority: row.priority,
        groups: row.groups.clone(),
        votes: (needed > 1).then_some((given, needed)),
    }
}

/// One question in full, for a reader; without the form's token.
pub(super) async fn card(
    doors: &Doors,
    reader: &Identity,
    id: String,
) -> Result<CardView, Problem> {
    let row = find_question(doors, reader, id).await?;
    let run = doors.visible(reader, &row.run_id).await?;
    let definition = doors.runtime.pinned(&run).await?;
    let sensitivity = doors.runtime.sensitivity(&run).await?;
    let after = run.head.0.checked_sub(LOOK_BACK).map(Seq);
    let events = events_up_to(doors, &row.run_id, after, run.head).await?;
    let shown = shown(&row);
    let data = shown["data"].clone();
    let offered = actions(&row.kind, &data);
    let offered = offered.as_array().into_iter().flatten();
    let offered: Vec<String> = offered
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let decided = row.closed.as_ref().map(|outcome| Decided {
        outcome: outcome.clone(),
        by: shown["decidedBy"].as_str().map(str::to_owned),
        at: shown["decidedAt"].as_i64().map(|at| rfc3339(Timestamp(at))),
    });
    let next = match decided {
        None => next_steps(doors, reader, &row, &definition, &offered).await?,
        Some(_) => Vec::new(),
    };
    let history = led_here(&events, &row);
    Ok(CardView {
        id: row.interrupt.to_string(),
        title: title(&row.kind, &data),
        run_id: row.run_id.to_string(),
        run_status: run.row.status.as_str().to_owned(),
        workflow_id: run.row.workflow_id.to_string(),
        node_id: row.node.to_string(),
        created_at: rfc3339(row.created_at),
        deadline: row.deadline.map(rfc3339),
        priority: row.priority,
        groups: row.groups.clone(),
        resume_schema: shown.get("resumeSchema").cloned(),
        digest: text(&shown["digest"]),
        votes: votes(&shown).into_iter().map(vote).collect(),
        asked_back: asked_back(&events, &row.interrupt),
        history: history
            .iter()
            .map(|event| run_view::event(&row.run_id, event, &sensitivity))
            .collect(),
        may_answer: reader.may(Scope::ApprovalsRespond).is_ok(),
        kind: row.kind,
        actions: offered,
        data,
        next,
        decided,
        ..CardView::default()
    })
}

/// The last events before the question was asked.
fn led_here<'a>(events: &'a [Recorded], row: &InterruptRow) -> &'a [Recorded] {
    let asked = |recorded: &Recorded| match &recorded.event {
        Event::InterruptRequested { interrupt, .. } => interrupt.id == row.interrupt,
        _ => false,
    };
    let end = events.iter().position(asked);
    // Asked so long ago that the log's end does not hold it: nothing here led to it.
    let before = &events[..end.unwrap_or(0)];
    &before[before.len().saturating_sub(SHOWN_EVENTS)..]
}

fn asked_back(events: &[Recorded], id: &InterruptId) -> Vec<AskedBack> {
    let mut asked = Vec::new();
    for recorded in events {
        if let Event::ApprovalQuestioned {
            interrupt,
            question,
            by,
            ..
        } = &recorded.event
            && interrupt == id
        {
            asked.push(AskedBack {
                by: by.as_ref().map(ToString::to_string),
                question: question.clone(),
                at: rfc3339(recorded.at),
            });
        }
    }
    asked
}

async fn next_steps(
    doors: &Doors,
    reader: &Identity,
    row: &InterruptRow,
    definition: &Definition,
    offered: &[String],
) -> Result<Vec<NextStep>, Fault> {
    if row.kind != "approval" {
        let answer = offered.first().into_iter();
        return Ok(answer
            .map(|action| after_any_answer(definition, &row.node, action))
            .collect());
    }
    let telling = offered.iter().map(String::as_str);
    let telling: Vec<&str> = telling
        .filter(|action| matches!(*action, "accept" | "reject" | "refine"))
        .collect();
    let (tenant, run) = (&reader.tenant, &row.run_id);
    let ahead = doors.runtime.foresee(tenant, run, &row.node, &telling);
    let steps = telling.iter().zip(ahead.await?);
    Ok(steps
        .map(|(action, ahead)| NextStep {
            action: (*action).to_owned(),
            fails: ahead == Ahead::Fails,
            nodes: match ahead {
                Ahead::Nodes(nodes) => nodes.iter().map(|id| name(definition, id)).collect(),
                Ahead::Fails => Vec::new(),
            },
        })
        .collect())
}

/// Which way it goes may depend on an answer nobody has given yet.
fn after_any_answer(definition: &Definition, node: &NodeId, action: &str) -> NextStep {
    let edges = definition.document.edges.iter();
    let edges = edges.filter(|edge| edge.source_node_id == *node);
    let nodes = edges.map(|edge| {
        let name = name(definition, &edge.target_node_id);
        match edge.condition {
            Some(_) => format!("{name} (depends on the answer)"),
            None => name,
        }
    });
    NextStep {
        action: action.to_owned(),
        nodes: nodes.collect(),
        fails: false,
    }
}

fn name(definition: &Definition, node: &NodeId) -> String {
    let found = definition.document.nodes.iter().find(|n| n.id == *node);
    found.map_or_else(|| node.to_string(), |n| n.name.clone())
}

fn votes(shown: &Value) -> Vec<Vote> {
    serde_json::from_value(shown["votes"].clone()).unwrap_or_default()
}

fn vote(vote: Vote) -> VoteView {
    VoteView {
        voter: vote.voter,
        action: vote.action,
        at: rfc3339(vote.at),
        feedback: vote.feedback,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
