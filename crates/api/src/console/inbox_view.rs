//! View models of the inbox pages. A page of rows reads one page of the store; a card reads the end
//! of its run's log, never all of it.

use super::conversation_card::conversation_card;
use super::people_view::vote;
use super::run_view;
use super::shown_bytes::{ShownBytes, line};
use crate::api::ApiState;
use crate::paging::{self, unknown_cursor};
use crate::params::Params;
use crate::problem::Problem;
use crate::routes::{actions, expired_at, question_position, title};
use serde_json::Value;
use std::borrow::Cow;
use tandem_access::{Identity, Scope};
use tandem_app::{
    AppError, Definition, Fault, InboxCursor, InboxQuery, InboxSort, InterruptRow, NextSteps,
    PageLimit, ResourceKind,
};
use tandem_console::{
    CardView, Decided, FollowUpQuestion, InboxRow, InboxSelection, InboxView, NextStep,
};
use tandem_record::{
    DecisionPolicy, Event, InterruptId, LINK_VOTER, NodeId, QuestionBody, RecordedEvent, RunId,
    Timestamp, Vote,
};
use tandem_wire::v1::time::rfc3339;

const ROWS: usize = 30;
/// How far a card looks back for the history of its question.
const LOOK_BACK: PageLimit = PageLimit {
    events: 400,
    bytes: 4 * 1024 * 1024,
};
/// A longer question is not shown: nobody should answer what they did not see completely.
const MAX_QUESTION_BYTES: usize = 1024 * 1024;
const SHOWN_EVENTS: usize = 20;
/// Outcome of a question whose time is up before its run noted it.
const EXPIRED: &str = "expired";

/// The selection in the query parameters.
pub(super) fn selection(params: &Params) -> Result<InboxSelection, Problem> {
    let text = |name: &str| params.get(name).map(str::to_owned);
    let selection = InboxSelection {
        kind: text("kind"),
        group: text("group"),
        sort: text("sort"),
        cursor: text("cursor"),
    };
    selection.cursor.as_deref().map(split_cursor).transpose()?;
    query(&selection).map(|_| selection)
}

fn query(selection: &InboxSelection) -> Result<InboxQuery, Problem> {
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
        after: None,
        limit: ROWS,
    })
}

/// The rank of the last question shown, and its id.
fn cursor(rank: i64, last: &InterruptRow) -> String {
    format!("q{rank}.{}", paging::cursor(last.interrupt.as_str()))
}

fn split_cursor(cursor: &str) -> Result<(i64, InterruptId), Problem> {
    let parts = cursor.strip_prefix('q').and_then(|c| c.split_once('.'));
    let (rank, last) = parts.ok_or_else(unknown_cursor)?;
    let rank = rank.parse().map_err(|_| unknown_cursor())?;
    Ok((rank, paging::parse_cursor(last)?.into()))
}

async fn find_cursor(
    api: &ApiState,
    reader: &Identity,
    cursor: &str,
) -> Result<InboxCursor, Problem> {
    let (rank, last) = split_cursor(cursor)?;
    Ok(InboxCursor {
        rank,
        position: question_position(api, reader, &last).await?,
    })
}

/// The list, the filter and, if one is chosen, the card.
pub(super) async fn load_inbox(
    api: &ApiState,
    reader: &Identity,
    selection: InboxSelection,
    card: Option<CardView>,
) -> Result<InboxView, Problem> {
    let choices = api.app.inbox_choices(reader).await?;
    let mut view = load_rows(api, reader, selection).await?;
    view.kinds = choices.kinds;
    view.groups = choices.groups;
    view.chosen = card.as_ref().map(|card| card.id.clone());
    view.card = card;
    Ok(view)
}

/// The list alone.
pub(super) async fn load_rows(
    api: &ApiState,
    reader: &Identity,
    selection: InboxSelection,
) -> Result<InboxView, Problem> {
    let query = InboxQuery {
        after: match selection.cursor.as_deref() {
            Some(cursor) => Some(find_cursor(api, reader, cursor).await?),
            None => None,
        },
        ..query(&selection)?
    };
    let page = api.app.read_inbox(reader, query).await?;
    let last = page.rows.last().filter(|_| page.more);
    let rows = page.rows.iter();
    let rows: Result<_, Fault> = rows.map(|(_, found)| row(found, api.now())).collect();
    Ok(InboxView {
        next_cursor: last.map(|(place, row)| cursor(place.rank, row)),
        rows: rows?,
        selection,
        ..InboxView::default()
    })
}

fn row(row: &InterruptRow, now: Timestamp) -> Result<InboxRow, Fault> {
    let question = row.question()?;
    let data = &*question.data;
    let needed = data["requiredApprovals"].as_u64().unwrap_or(1);
    let votes = question.votes.iter();
    let given = votes.filter(|vote| vote.action != "reject").count();
    Ok(InboxRow {
        id: row.interrupt.to_string(),
        kind: row.kind.clone(),
        title: line(&title(&row.kind, data)),
        workflow_id: question
            .workflow_id
            .as_deref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        node_id: row.step.to_string(),
        created_at: rfc3339(row.created_at),
        deadline: row.deadline.map(rfc3339),
        expired: expired_at(row, &question, now).is_some(),
        priority: row.priority,
        groups: row.groups.clone(),
        votes: (needed > 1).then_some((given, needed)),
    })
}

/// The run that asks the question.
pub(super) fn run_of(row: &InterruptRow) -> Result<RunId, Problem> {
    let missing = || AppError::NotFound(ResourceKind::Interrupt);
    Ok(row.run().ok_or_else(missing)?)
}

/// One question in full, for a reader; without the CSRF token of the form.
pub(super) async fn load_card(
    api: &ApiState,
    reader: &Identity,
    id: String,
) -> Result<CardView, Problem> {
    let id = InterruptId::from(id);
    let row = api.app.read_interrupt(reader, &id).await?;
    let not_shown = not_shown(&row);
    let mut question = row.question()?;
    let decided = decided(&row, &question, api.now());
    if let Some(session) = question.session_id.take() {
        if not_shown.is_some() {
            question.data = Cow::default();
        }
        let card = conversation_card(api, reader, row, question, &session, decided).await?;
        return Ok(CardView { not_shown, ..card });
    }
    if not_shown.is_some() {
        question = QuestionBody::default();
    }
    let run_id = run_of(&row)?;
    let run = api.app.read_run(reader, &run_id).await?;
    let definition = api.app.pinned_definition(&run).await?;
    let events = api
        .app
        .read_newest_events(&run_id, run.head, LOOK_BACK)
        .await?;
    let data = question.data.into_owned();
    let offered = actions(&row.kind, &data);
    let offered = offered.as_array().into_iter().flatten();
    let offered: Vec<String> = offered
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let mut offer = match decided {
        _ if not_shown.is_some() => OfferedActions::default(),
        None => offer(api, reader, &row, &data, &definition, offered).await?,
        Some(_) => OfferedActions::default(),
    };
    offer.remove_own_vote(&question.votes, reader);
    let history = events_before(&events, &row);
    Ok(CardView {
        id: row.interrupt.to_string(),
        title: line(&title(&row.kind, &data)),
        run_id: run_id.to_string(),
        run_status: run.row.status.as_str().to_owned(),
        workflow_id: run.row.workflow_id.to_string(),
        node_id: row.step.to_string(),
        created_at: rfc3339(row.created_at),
        deadline: row.deadline.map(rfc3339),
        priority: row.priority,
        groups: row.groups.clone(),
        resume_schema: question.resume_schema.map(Cow::into_owned),
        digest: question.digest.into_owned(),
        votes: question.votes.into_owned().into_iter().map(vote).collect(),
        proposed: question.proposed.map(Cow::into_owned),
        edited: question.edited.map(Cow::into_owned),
        follow_up_questions: follow_up_questions(&events, &row.interrupt),
        history: history.iter().map(run_view::event_head).collect(),
        denied_reason: offer.denied_reason,
        own_vote: offer.own_vote,
        kind: row.kind,
        actions: offer.actions,
        data,
        next: offer.next,
        decided,
        not_shown,
        ..CardView::default()
    })
}

/// How a question ended, if it did.
fn decided(row: &InterruptRow, question: &QuestionBody<'_>, now: Timestamp) -> Option<Decided> {
    let expired = expired_at(row, question, now).map(|at| Decided {
        outcome: EXPIRED.to_owned(),
        by: None,
        at: Some(rfc3339(at)),
    });
    let decided = row.closed.as_ref().map(|outcome| Decided {
        outcome: outcome.clone(),
        by: question.decided_by.as_deref().map(str::to_owned),
        at: question.decided_at.map(rfc3339),
    });
    decided.or(expired)
}

/// Why the content of a question is not on its card.
fn not_shown(row: &InterruptRow) -> Option<String> {
    let (bytes, id) = (row.body.len(), &row.interrupt);
    (bytes > MAX_QUESTION_BYTES).then(|| {
        format!(
            "This question has {bytes} bytes, too many for this page. Read and answer it with the API \
             (GET /v1/host/tandem/interrupts/{id}) or with \u{201c}tandem inbox show {id}\u{201d}."
        )
    })
}

/// The last events before the interrupt was opened.
fn events_before<'a>(events: &'a [RecordedEvent], row: &InterruptRow) -> &'a [RecordedEvent] {
    let opens = |recorded: &RecordedEvent| match &recorded.event {
        Event::InterruptRequested { interrupt, .. } => interrupt.id == row.interrupt,
        _ => false,
    };
    let end = events.iter().position(opens);
    // The interrupt is older than the events that were read: no history is shown.
    let before = &events[..end.unwrap_or(0)];
    &before[before.len().saturating_sub(SHOWN_EVENTS)..]
}

fn follow_up_questions(events: &[RecordedEvent], id: &InterruptId) -> Vec<FollowUpQuestion> {
    let mut shown = ShownBytes::page();
    let mut questions = Vec::new();
    for recorded in events {
        if let Event::ApprovalQuestioned {
            interrupt,
            question,
            by,
            ..
        } = &recorded.event
            && interrupt == id
        {
            questions.push(FollowUpQuestion {
                by: by.as_ref().map(ToString::to_string),
                question: shown.text(question),
                at: rfc3339(recorded.at),
            });
        }
    }
    questions
}

/// What a reader may do about an open question, and what would follow from each action.
#[derive(Default)]
struct OfferedActions {
    actions: Vec<String>,
    next: Vec<NextStep>,
    /// Why the reader may not answer.
    denied_reason: Option<String>,
    own_vote: Option<String>,
}

impl OfferedActions {
    /// Repeating a vote changes nothing, so the reader's own vote is not offered again.
    fn remove_own_vote(&mut self, votes: &[Vote], reader: &Identity) {
        let own = reader.principal.as_str();
        let theirs = |vote: &&Vote| {
            let unnamed = vote.via_link && vote.voter == LINK_VOTER;
            let established = vote.claimed_by.is_none() && !unnamed;
            established && (vote.voter == own || vote.delegate.as_deref() == Some(own))
        };
        if let Some(vote) = votes.iter().find(theirs) {
            self.actions.retain(|action| *action != vote.action);
            self.own_vote = Some(vote.action.clone());
        }
    }
}

/// Offers actions by the same rules that check the answer.
async fn offer(
    api: &ApiState,
    reader: &Identity,
    row: &InterruptRow,
    data: &Value,
    definition: &Definition,
    actions: Vec<String>,
) -> Result<OfferedActions, Problem> {
    let has_preview =
        |action: &&String| matches!(&***action, "accept" | "reject" | "refine" | "edit-accept");
    let mut previewed: Vec<&str> = actions.iter().filter(has_preview).map(|a| &**a).collect();
    // A held decision shown as a question: one answer accepts it, every other answer refuses it.
    let held_question = row.kind == "clarification" && !data["decision"].is_null();
    if held_question {
        previewed = vec!["accept", "reject"];
    } else if previewed.is_empty() {
        previewed = actions.first().map(|a| &**a).into_iter().collect();
    }
    let preview = api.app.preview_next_steps(reader, row, &previewed);
    let Some(preview) = preview.await? else {
        return Ok(OfferedActions::default());
    };
    let mut next = Vec::new();
    let mut refused = Vec::new();
    for (action, step) in previewed.iter().zip(preview.next_steps) {
        if step == NextSteps::Refused {
            refused.push((*action).to_owned());
            continue;
        }
        // The next step after other actions may depend on the answer itself.
        let has_preview = matches!(*action, "accept" | "reject" | "refine" | "edit-accept");
        let text = match step {
            NextSteps::Nodes(_) if !has_preview => {
                describe_any_answer(definition, row.step.as_str())
            }
            // The edited values are not known yet; the next steps are those of an approval.
            NextSteps::Nodes(_) if *action == "edit-accept" => continue,
            step => describe_next_step(definition, action, step),
        };
        let label = match (held_question, *action) {
            (true, "accept") => "Answer \u{201c}proceed\u{201d}",
            (true, _) => "Any other answer",
            (false, action) => action,
        };
        next.push(NextStep {
            action: label.to_owned(),
            text,
        });
    }
    let mut actions = actions;
    actions.retain(|action| !refused.contains(action));
    Ok(OfferedActions {
        actions,
        next,
        denied_reason: denied_reason(api, reader, &preview.policy).await?,
        own_vote: None,
    })
}

/// Why a reader may not answer; `None` if they may.
async fn denied_reason(
    api: &ApiState,
    reader: &Identity,
    policy: &DecisionPolicy,
) -> Result<Option<String>, Problem> {
    if reader.require_scope(Scope::ApprovalsRespond).is_err() {
        let why = "Your key may look but not answer: it lacks the scope approvals:respond.";
        return Ok(Some(why.to_owned()));
    }
    let denial = api.app.denial_to_decide(reader, policy).await?;
    Ok(denial.map(|why| Problem::may_not_decide(None, why).message().to_owned()))
}

fn describe_next_step(definition: &Definition, action: &str, step: NextSteps) -> String {
    let names = |nodes: &[NodeId]| {
        let names: Vec<String> = nodes.iter().map(|id| name(definition, id)).collect();
        names.join(", ")
    };
    match step {
        NextSteps::NodeFails => "The run fails with interrupt_rejected.".to_owned(),
        NextSteps::Nodes(nodes) if nodes.is_empty() => "Nothing is left on this branch.".to_owned(),
        NextSteps::Nodes(nodes) if action == "refine" => {
            format!("Again: {}, then this question.", names(&nodes))
        }
        NextSteps::Nodes(nodes) => names(&nodes),
        NextSteps::Workers(workers) => {
            let workers: Vec<&str> = workers.iter().map(|w| w.as_str()).collect();
            format!(
                "The held decision is carried out: {} starts.",
                workers.join(", ")
            )
        }
        NextSteps::RunEnds => "The held decision is carried out: the run ends.".to_owned(),
        NextSteps::NextIteration(supervisor) => {
            let again = format!("{} decides again.", name(definition, &supervisor));
            match action {
                "reject" => format!("Nothing of it happens; {again}"),
                _ => again,
            }
        }
        NextSteps::ReplacementCarriedOut => "What you decide instead is carried out.".to_owned(),
        NextSteps::Refused => "Not possible now.".to_owned(),
    }
}

fn describe_any_answer(definition: &Definition, node: &str) -> String {
    let edges = definition.document.edges.iter();
    let edges = edges.filter(|edge| edge.source_node_id.as_str() == node);
    let nodes = edges.map(|edge| {
        let name = name(definition, &edge.target_node_id);
        match edge.condition {
            Some(_) => format!("{name} (depends on the answer)"),
            None => name,
        }
    });
    let nodes: Vec<String> = nodes.collect();
    match nodes.is_empty() {
        true => "Nothing is left on this branch.".to_owned(),
        false => nodes.join(", "),
    }
}

fn name(definition: &Definition, node: &NodeId) -> String {
    let found = definition.document.nodes.iter().find(|n| n.id == *node);
    found.map_or_else(|| node.to_string(), |n| n.name.clone())
}
