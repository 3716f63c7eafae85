//! Which actions get an audit entry, and with which fields. Entries hold only ids, hashes and
//! outcomes. Texts of people (reasons, comments, answers) stay in the run's own log, where secrets
//! are redacted and readers are authorized.
//!
//! A decision about a question always gets an entry, also when a timeout made it. Every other
//! action gets one only when a caller requested it. Steps that a run takes by itself are only in
//! its log.

use crate::questions;
use crate::runtime::Runtime;
use serde_json::{Value, json};
use tandem_engine::run::Decision;
use tandem_record::{
    Actor, AuthMethod, Command, DeciderSnapshot, Event, InterruptId, Object, Reply, Resolution,
    TenantId, Timestamp, Vote, proposed_artifact,
};
use tandem_store::audit::DECISION;
use tandem_store::{AuditDraft, Commit, Error, Fault, InterruptRow};

impl Runtime {
    /// Records an action that changes nothing, such as a denial. An action that changes something
    /// is recorded in its own commit.
    pub async fn record_audit_entry(
        &self,
        tenant: Option<&TenantId>,
        action: &str,
        target: &str,
        details: Object,
    ) -> Result<(), Fault> {
        let now = self.clock().now();
        let commit = Commit {
            tenant: tenant.cloned(),
            audit: vec![AuditDraft::new(
                now,
                tenant,
                &self.actor,
                action,
                target,
                details,
            )],
            ..Commit::default()
        };
        match self.store().commit(commit).await {
            Ok(_) => Ok(()),
            Err(Error::Fault(fault)) => Err(fault),
            Err(Error::Conflict(conflict)) => unreachable!("nothing to conflict on: {conflict}"),
        }
    }

    /// The actor this handle acts for; callers use it for drafts in their own commits.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }
}

/// What a caller requested of a run. Recorded in the commit that carries it out.
#[derive(Clone, Debug)]
pub struct AuditAction {
    actor: Actor,
    kind: AuditActionKind,
    /// Groups, roles and delegation of the decider at the time of the decision.
    decider: DeciderSnapshot,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AuditActionKind {
    Create,
    Fork,
    Cancel,
    Pause,
    Resume,
    Answer,
    Deny(Option<InterruptId>),
    Event,
}

impl AuditAction {
    pub(crate) fn creation(actor: &Actor) -> Self {
        Self {
            actor: actor.clone(),
            kind: AuditActionKind::Create,
            decider: DeciderSnapshot::default(),
        }
    }

    /// Events copied into a fork are not recorded again; they have entries from when they happened.
    pub(crate) fn fork(actor: &Actor) -> Self {
        Self {
            kind: AuditActionKind::Fork,
            ..Self::creation(actor)
        }
    }

    /// `None` for commands that callers cannot send.
    pub(crate) fn from_command(command: &Command, actor: &Actor) -> Option<Self> {
        let kind = match command {
            Command::Cancel { .. } => AuditActionKind::Cancel,
            Command::Pause { .. } => AuditActionKind::Pause,
            Command::Resume { .. } => AuditActionKind::Resume,
            Command::ResolveInterrupt { .. } => AuditActionKind::Answer,
            Command::DenyDecision { interrupt, .. } => AuditActionKind::Deny(interrupt.clone()),
            Command::DeliverEvent { .. } => AuditActionKind::Event,
            Command::FireTimer(_)
            | Command::FinishEffect { .. }
            | Command::ReportChildOutcome { .. }
            | Command::ReportFlow(_)
            | Command::Continue => return None,
        };
        let decider = match command {
            Command::ResolveInterrupt { decider, .. } => decider.clone(),
            _ => DeciderSnapshot::default(),
        };
        Some(Self {
            actor: actor.clone(),
            kind,
            decider,
        })
    }
}

/// The audit entries of one decision. `questions` are the rows it changes.
pub(crate) fn entries(
    audit_action: Option<&AuditAction>,
    decision: &Decision,
    questions: &[InterruptRow],
    now: Timestamp,
) -> Vec<AuditDraft> {
    if decision.events.is_empty() {
        return Vec::new();
    }
    let host = AuditAction {
        actor: Actor::host(),
        kind: AuditActionKind::Answer,
        decider: DeciderSnapshot::default(),
    };
    let requested = audit_action.and_then(|audit_action| action_entry(audit_action, decision, now));
    if audit_action.is_some_and(|audit_action| audit_action.kind == AuditActionKind::Fork) {
        return requested.into_iter().collect();
    }
    let answer_action =
        audit_action.filter(|audit_action| audit_action.kind == AuditActionKind::Answer);
    let decided = decision.events.iter().filter_map(|recorded| {
        let Event::InterruptResolved { resolution, .. } = &recorded.event else {
            return None;
        };
        // An answer closes only the question it answers. Any other question is closed by the host.
        let (audit_action, votes) = match (&decision.reply, answer_action) {
            (
                Reply::Resolved {
                    interrupt, votes, ..
                },
                Some(audit_action),
            ) if *interrupt == resolution.interrupt => (audit_action, votes.as_slice()),
            _ => (&host, [].as_slice()),
        };
        let mut rows = questions.iter();
        let row = rows.find(|row| row.interrupt == resolution.interrupt)?;
        Some(decision_entry(
            row,
            resolution,
            audit_action,
            votes,
            recorded.at,
        ))
    });
    requested.into_iter().chain(decided).collect()
}

fn action_entry(
    audit_action: &AuditAction,
    decision: &Decision,
    now: Timestamp,
) -> Option<AuditDraft> {
    let run = &decision.after;
    let mut details = Object::new();
    let mut target = run.id().as_str();
    let action = match &audit_action.kind {
        AuditActionKind::Create => {
            details.insert("workflowId".to_owned(), json!(run.definition().id()));
            details.insert("definition".to_owned(), json!(run.definition().hash));
            "run.create"
        }
        AuditActionKind::Fork => {
            if let Some(from) = &run.request().forked_from {
                details.insert("sourceRunId".to_owned(), json!(from.run_id));
                details.insert("fromSeq".to_owned(), json!(from.from_seq));
                details.insert("mode".to_owned(), json!(from.mode.as_str()));
            }
            "run.fork"
        }
        AuditActionKind::Cancel => "run.cancel",
        AuditActionKind::Pause => "run.pause",
        AuditActionKind::Resume => "run.resume",
        // A vote that does not decide yet. A deciding vote is recorded as the decision.
        AuditActionKind::Answer => match &decision.reply {
            Reply::Resolved {
                interrupt,
                node,
                outcome: None,
                ..
            } => {
                details.insert("runId".to_owned(), json!(run.id()));
                details.insert("nodeId".to_owned(), json!(node));
                details.insert("by".to_owned(), by(audit_action));
                target = interrupt.as_str();
                "interrupt.respond"
            }
            _ => return None,
        },
        AuditActionKind::Deny(interrupt) => {
            let Reply::Denied { why, .. } = &decision.reply else {
                return None;
            };
            details.insert("runId".to_owned(), json!(run.id()));
            details.insert("why".to_owned(), json!(why.as_str()));
            details.insert("by".to_owned(), by(audit_action));
            if let Some(interrupt) = interrupt {
                target = interrupt.as_str();
            }
            "interrupt.deny"
        }
        AuditActionKind::Event => "event.deliver",
    };
    let tenant = &run.request().owner.tenant;
    let actor = &audit_action.actor;
    Some(AuditDraft::new(
        now,
        Some(tenant),
        actor,
        action,
        target,
        details,
    ))
}

/// The data of a later receipt: what was shown, who decided, with which authority, and how.
fn decision_entry(
    row: &InterruptRow,
    resolution: &Resolution,
    audit_action: &AuditAction,
    votes: &[Vote],
    at: Timestamp,
) -> AuditDraft {
    let question = row.question().expect("the decision wrote this row");
    let mut details = Object::new();
    let mut put = |name: &str, value: Value| {
        details.insert(name.to_owned(), value);
    };
    put("runId", json!(row.run()));
    put("nodeId", json!(row.step));
    put("kind", json!(row.kind));
    put("digest", json!(question.digest));
    put("outcome", json!(resolution.outcome));
    put("answerDigest", json!(questions::digest(&resolution.value)));
    if let Some(edited) = &question.edited {
        let proposed = question.proposed.as_deref();
        let before = proposed.or_else(|| proposed_artifact(&question.data));
        put(
            "artifact",
            json!({
                "before": before.map(questions::digest),
                "after": questions::digest(edited),
            }),
        );
    }
    let actor = &audit_action.actor;
    put("by", by(audit_action));
    // Reasons given by the host are recorded. Reasons given by a person are not.
    if let Some(reason) = resolution
        .reason
        .as_ref()
        .filter(|_| actor.auth_method == AuthMethod::Host)
    {
        put("reason", json!(reason));
    }
    if !votes.is_empty() {
        put("votes", votes.iter().map(vote_entry).collect());
    }
    AuditDraft::new(
        at,
        Some(&row.tenant),
        actor,
        DECISION,
        row.interrupt.as_str(),
        details,
    )
}

/// Who voted, who only claimed that name, and who acted for them; not what they wrote.
fn vote_entry(vote: &Vote) -> Value {
    let mut entry = json!({"voter": vote.voter, "action": vote.action, "at": vote.at});
    if let Some(claimed_by) = &vote.claimed_by {
        entry["claimedBy"] = json!(claimed_by);
    }
    if vote.via_link {
        entry["viaLink"] = json!(true);
    }
    if let Some(delegate) = &vote.delegate {
        entry["delegate"] = json!(delegate);
    }
    entry
}

fn by(audit_action: &AuditAction) -> Value {
    let AuditAction { actor, decider, .. } = audit_action;
    let mut by = json!({"via": actor.auth_method.to_string(), "roles": &*actor.roles});
    if let Some(principal) = &actor.principal {
        by["principal"] = json!(principal);
    }
    if let Some(other) = decider.acting_for.as_ref().or(actor.acting_for.as_ref()) {
        by["actingFor"] = json!(other);
        by["rolesActedWith"] = json!(decider.roles);
    }
    if !decider.groups.is_empty() {
        by["groups"] = json!(decider.groups);
    }
    by
}
