//! The inbox rows of a run: what is asked, what was shown, and the outcome. Derived from the run
//! before and after a decision, and written in the same commit.

use crate::runtime::Runtime;
use serde_json::Value;
use std::borrow::Cow;
use tandem_engine::run::{Run, count_vote};
use tandem_record::{
    ClosedInterrupt, Event, Interrupt, InterruptId, InterruptView, Owner, Partition, QuestionBody,
    RecordedEvent, Resolution, RunId, SessionId, StepId, StreamId, TenantId, Timestamp, Vote,
    WorkflowId, WorkspaceId, proposed_artifact,
};
use tandem_store::{
    Fault, InboxChoices, InboxPage, InboxQuery, InterruptFilter, InterruptListing, InterruptRow,
    Page, RunPosition,
};

/// A run that waits for answers.
pub(crate) trait QuestionSource {
    fn run_id(&self) -> &RunId;
    fn owner(&self) -> &Owner;
    fn workflow_id(&self) -> WorkflowId;
    /// The conversation it belongs to.
    fn session_id(&self) -> Option<&SessionId>;
    fn ended_at(&self) -> Option<Timestamp>;
    fn open_questions(&self) -> Vec<InterruptView>;
    /// How a question ended.
    fn closed_question(&self, id: &InterruptId) -> Option<&ClosedInterrupt>;
}

impl QuestionSource for Run {
    fn run_id(&self) -> &RunId {
        self.id()
    }

    fn owner(&self) -> &Owner {
        &self.request().owner
    }

    fn workflow_id(&self) -> WorkflowId {
        self.definition().id().clone()
    }

    fn session_id(&self) -> Option<&SessionId> {
        None
    }

    fn ended_at(&self) -> Option<Timestamp> {
        self.ended_at()
    }

    fn open_questions(&self) -> Vec<InterruptView> {
        self.open_questions()
    }

    fn closed_question(&self, id: &InterruptId) -> Option<&ClosedInterrupt> {
        self.closed_question(id)
    }
}

/// Rows that changed between two states of a run. `events` are the events between them.
pub(crate) fn changed_rows<R: QuestionSource>(
    before: Option<&R>,
    after: &R,
    events: &[RecordedEvent],
) -> Vec<InterruptRow> {
    let was_open = before.map(R::open_questions).unwrap_or_default();
    let is_open = after.open_questions();
    let mut rows: Vec<InterruptRow> = is_open
        .iter()
        .filter(|now| !was_open.contains(now))
        .map(|question| row(after, question, None))
        .collect();
    for question in &was_open {
        let id = &question.interrupt.id;
        if !is_open.iter().any(|q| q.interrupt.id == *id) {
            rows.push(row(after, question, Some(closing(after, question, events))));
        }
    }
    rows
}

struct Closing {
    outcome: String,
    by: Option<String>,
    at: Timestamp,
    /// Includes the vote that closed the question.
    votes: Vec<Vote>,
    /// What was accepted instead of what was shown.
    edited: Option<Value>,
}

fn closing(
    run: &impl QuestionSource,
    question: &InterruptView,
    events: &[RecordedEvent],
) -> Closing {
    let mut votes = question.votes.clone();
    let mut edited = None;
    let shown = question.interrupt.data.get("artifactData");
    for recorded in events {
        match &recorded.event {
            // A timeout is not a vote.
            Event::ApprovalReceived { node, decision, .. }
                if *node == question.node && decision.action != "timeout" =>
            {
                count_vote(&mut votes, decision, shown, recorded.at);
                edited.clone_from(&decision.edited);
            }
            Event::InterruptResolved { resolution, .. }
                if resolution.interrupt == question.interrupt.id =>
            {
                let last = edited.or_else(|| accepted_edit(&resolution.value));
                edited = accepted_artifact(question, resolution, last);
                break;
            }
            _ => {}
        }
    }
    let closed = run.closed_question(&question.interrupt.id);
    Closing {
        outcome: closed.map_or_else(|| "cancelled".to_owned(), |c| c.outcome.clone()),
        by: closed.and_then(|c| c.decided_by().map(str::to_owned)),
        at: closed.map_or_else(|| run.ended_at().unwrap_or_default(), |c| c.at),
        votes,
        edited,
    }
}

/// What was accepted in place of what was proposed: as the closing answer changed it, or as an
/// earlier voter did.
fn accepted_artifact(
    question: &InterruptView,
    resolution: &Resolution,
    edited: Option<Value>,
) -> Option<Value> {
    let shown = proposed_artifact(&question.interrupt.data);
    let edited = edited.filter(|edited| Some(edited) != shown);
    let earlier = || {
        question.proposed.as_ref()?;
        shown.filter(|_| resolution.outcome.as_deref() == Some("accepted"))
    };
    edited.or_else(|| earlier().cloned())
}

/// What somebody accepted instead of what they were shown.
pub fn accepted_edit(answer: &Value) -> Option<Value> {
    let action = answer["action"].as_str();
    let edits = matches!(action, Some("edit-accept" | "edit"));
    let replaced = answer
        .get("editedArtifactData")
        .or_else(|| answer.get("decision"));
    replaced.filter(|_| edits).cloned()
}

fn row(
    run: &impl QuestionSource,
    question: &InterruptView,
    closing: Option<Closing>,
) -> InterruptRow {
    let owner = run.owner();
    let interrupt = &question.interrupt;
    let closed = closing.as_ref();
    let votes = closed.map_or(&question.votes, |closing| &closing.votes);
    let edited = closed.and_then(|closing| closing.edited.as_ref());
    let decided_by = closed.and_then(|closing| closing.by.as_deref());
    let body = QuestionBody {
        key: Cow::Borrowed(&interrupt.key),
        data: Cow::Borrowed(&interrupt.data),
        digest: Cow::Owned(digest(&interrupt.data)),
        votes: Cow::Borrowed(votes),
        approvers: Cow::Borrowed(&question.policy.approvers),
        approver_groups: Cow::Borrowed(&question.policy.groups),
        approver_roles: Cow::Borrowed(&question.policy.roles),
        level: Some(question.level),
        reminders: Some(question.reminders),
        workflow_id: Some(Cow::Owned(run.workflow_id())),
        session_id: run.session_id().map(Cow::Borrowed),
        run_id: None,
        resume_schema: interrupt.resume_schema.as_ref().map(Cow::Borrowed),
        expires_at: question.expires_at,
        proposed: question.proposed.as_ref().map(Cow::Borrowed),
        edited: edited.map(Cow::Borrowed),
        outcome: closed.map(|closing| Cow::Borrowed(&*closing.outcome)),
        decided_by: decided_by.map(Cow::Borrowed),
        decided_at: closed.map(|closing| closing.at),
    };
    let body = body.to_json();
    InterruptRow {
        interrupt: interrupt.id.clone(),
        stream: StreamId::of_run(run.run_id()),
        step: StepId::new(question.node.as_str()),
        tenant: owner.tenant.clone(),
        workspace: owner.workspace.clone(),
        kind: interrupt.kind.clone(),
        created_at: interrupt.requested_at,
        deadline: question.deadline,
        priority: priority(interrupt),
        groups: groups(question),
        closed: closing.map(|c| c.outcome),
        body,
    }
}

/// Limit of groups by which one question can be filtered in the inbox.
const MAX_GROUPS: usize = 16;

/// Priority as the node sets it, 0 to 9; otherwise 0.
fn priority(interrupt: &Interrupt) -> i32 {
    let value = interrupt.data["priority"].as_i64().unwrap_or(0);
    let value = interrupt.priority.map_or(value, i64::from);
    i32::try_from(value.clamp(0, 9)).unwrap_or(0)
}

/// Groups that may decide the question.
fn groups(question: &InterruptView) -> Vec<String> {
    let current_groups = question.policy.groups.clone();
    // Escalated: the first deciders may no longer decide.
    if question.level > 0 {
        return current_groups;
    }
    let data = &question.interrupt.data;
    let named = [
        &data["approverGroupRefs"],
        &data["approverGroups"],
        &data["audience"]["groups"],
    ];
    let mut groups: Vec<String> = named
        .into_iter()
        .flat_map(|list| list.as_array().into_iter().flatten())
        .filter_map(|name| name.as_str())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .chain(current_groups)
        .collect();
    groups.sort();
    groups.dedup();
    groups.truncate(MAX_GROUPS);
    groups
}

/// SHA-256 of what was shown, in canonical form. A decision can be bound to it.
pub fn digest(shown: &Value) -> String {
    tandem_store::audit::digest(shown)
}

impl Runtime {
    /// One question of the caller's tenant, open or closed.
    pub async fn question(
        &self,
        tenant: &TenantId,
        interrupt: &InterruptId,
    ) -> Result<Option<InterruptRow>, Fault> {
        self.store().interrupt(tenant, interrupt).await
    }

    /// Where a question of the partition stands in listings.
    pub async fn question_position(
        &self,
        of: &Partition,
        interrupt: &InterruptId,
    ) -> Result<Option<RunPosition>, Fault> {
        self.store().interrupt_position(of, interrupt).await
    }

    pub async fn questions(
        &self,
        tenant: &TenantId,
        filter: &InterruptFilter,
        page: &Page,
    ) -> Result<InterruptListing, Fault> {
        self.store().list_interrupts(tenant, filter, page).await
    }

    /// Open questions in inbox order.
    pub async fn inbox(&self, tenant: &TenantId, query: &InboxQuery) -> Result<InboxPage, Fault> {
        self.store().inbox(tenant, query).await
    }

    /// Values by which open questions can be filtered.
    pub async fn inbox_choices(
        &self,
        tenant: &TenantId,
        workspace: Option<&WorkspaceId>,
    ) -> Result<InboxChoices, Fault> {
        self.store().inbox_choices(tenant, workspace).await
    }
}
