//! Which deeds the audit log tells, and in what words. Ids, hashes and outcomes only: what people
//! wrote (reasons, comments, answers) is in the run's own log, where secrets are taken out and
//! readers are checked.
//!
//! A decision about a question is told whoever made it, a clock included; everything else only
//! when somebody asked for it. Steps a run takes by itself are in its log and not here.

use crate::questions;
use crate::runtime::Runtime;
use serde_json::{Value, json};
use tandem_engine::run::Decision;
use tandem_record::{
    Actor, Command, Event, InterruptId, Object, Reply, Resolution, Standing, TenantId, Timestamp,
    Via, Vote,
};
use tandem_store::audit::DECISION;
use tandem_store::{AuditDraft, Commit, Error, Fault, InterruptRow};

impl Runtime {
    /// Tells something that changes nothing but is worth knowing, such as a denial. What changes
    /// something is told in the commit that does it.
    pub async fn tell(
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
            Ok(()) => Ok(()),
            Err(Error::Fault(fault)) => Err(fault),
            Err(Error::Conflict(conflict)) => unreachable!("nothing to conflict on: {conflict}"),
        }
    }

    /// The hands this handle is in, for drafts of callers' own commits.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }
}

/// What somebody asked of a run, for the commit that does it.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    actor: Actor,
    what: What,
    /// What was true of the one who decided when they did.
    standing: Standing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Create,
    Fork,
    Cancel,
    Pause,
    Resume,
    Answer,
    Deny(Option<InterruptId>),
    Event,
}

impl Deed {
    pub(crate) fn creation(actor: &Actor) -> Self {
        Self {
            actor: actor.clone(),
            what: What::Create,
            standing: Standing::default(),
        }
    }

    /// History that is copied into a fork was told when it happened.
    pub(crate) fn fork(actor: &Actor) -> Self {
        Self {
            what: What::Fork,
            ..Self::creation(actor)
        }
    }

    /// `None` for what no caller asks for.
    pub(crate) fn of(command: &Command, actor: &Actor) -> Option<Self> {
        let what = match command {
            Command::Cancel { .. } => What::Cancel,
            Command::Pause { .. } => What::Pause,
            Command::Resume { .. } => What::Resume,
            Command::ResolveInterrupt { .. } => What::Answer,
            Command::DenyDecision { interrupt, .. } => What::Deny(interrupt.clone()),
            Command::DeliverEvent { .. } => What::Event,
            Command::TimerFired(_)
            | Command::EffectFinished { .. }
            | Command::ChildReported { .. }
            | Command::Continue => return None,
        };
        let standing = match command {
            Command::ResolveInterrupt { standing, .. } => standing.clone(),
            _ => Standing::default(),
        };
        Some(Self {
            actor: actor.clone(),
            what,
            standing,
        })
    }
}

/// The entries of one decision. `questions` are the rows it changes.
pub(crate) fn entries(
    deed: Option<&Deed>,
    decision: &Decision,
    questions: &[InterruptRow],
    now: Timestamp,
) -> Vec<AuditDraft> {
    if decision.events.is_empty() {
        return Vec::new();
    }
    let host = Deed {
        actor: Actor::host(),
        what: What::Answer,
        standing: Standing::default(),
    };
    let asked = deed.and_then(|deed| deed_entry(deed, decision, now));
    if deed.is_some_and(|deed| deed.what == What::Fork) {
        return asked.into_iter().collect();
    }
    let answering = deed.filter(|deed| deed.what == What::Answer);
    let decided = decision.events.iter().filter_map(|recorded| {
        let Event::InterruptResolved { resolution, .. } = &recorded.event else {
            return None;
        };
        // An answer closes the very question it answers; any other closing is the host's.
        let (deed, votes) = match (&decision.reply, answering) {
            (
                Reply::Resolved {
                    interrupt, votes, ..
                },
                Some(deed),
            ) if *interrupt == resolution.interrupt => (deed, votes.as_slice()),
            _ => (&host, [].as_slice()),
        };
        let mut rows = questions.iter();
        let row = rows.find(|row| row.interrupt == resolution.interrupt)?;
        Some(decision_entry(row, resolution, deed, votes, recorded.at))
    });
    asked.into_iter().chain(decided).collect()
}

fn deed_entry(deed: &Deed, decision: &Decision, now: Timestamp) -> Option<AuditDraft> {
    let run = &decision.run;
    let mut details = Object::new();
    let mut target = run.id().as_str();
    let action = match &deed.what {
        What::Create => {
            details.insert("workflowId".to_owned(), json!(run.definition().id()));
            details.insert("definition".to_owned(), json!(run.definition().hash));
            "run.create"
        }
        What::Fork => {
            if let Some(from) = &run.request().forked_from {
                details.insert("sourceRunId".to_owned(), json!(from.run_id));
                details.insert("fromSeq".to_owned(), json!(from.from_seq));
                details.insert("mode".to_owned(), json!(from.mode.as_str()));
            }
            "run.fork"
        }
        What::Cancel => "run.cancel",
        What::Pause => "run.pause",
        What::Resume => "run.resume",
        // A voice that did not decide yet; one that did is told as the decision.
        What::Answer => match &decision.reply {
            Reply::Resolved {
                interrupt,
                node,
                outcome: None,
                ..
            } => {
                details.insert("runId".to_owned(), json!(run.id()));
                details.insert("nodeId".to_owned(), json!(node));
                details.insert("by".to_owned(), by(deed));
                target = interrupt.as_str();
                "interrupt.respond"
            }
            _ => return None,
        },
        What::Deny(interrupt) => {
            let Reply::Denied { why, .. } = &decision.reply else {
                return None;
            };
            details.insert("runId".to_owned(), json!(run.id()));
            details.insert("why".to_owned(), json!(why.as_str()));
            details.insert("by".to_owned(), by(deed));
            if let Some(interrupt) = interrupt {
                target = interrupt.as_str();
            }
            "interrupt.deny"
        }
        What::Event => "event.deliver",
    };
    let tenant = &run.request().owner.tenant;
    let actor = &deed.actor;
    Some(AuditDraft::new(
        now,
        Some(tenant),
        actor,
        action,
        target,
        details,
    ))
}

/// What a receipt will be made of: what was shown, who decided, as what, and how.
fn decision_entry(
    row: &InterruptRow,
    resolution: &Resolution,
    deed: &Deed,
    votes: &[Vote],
    at: Timestamp,
) -> AuditDraft {
    let shown: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let mut details = Object::new();
    let mut tell = |name: &str, value: Value| {
        details.insert(name.to_owned(), value);
    };
    tell("runId", json!(row.run_id));
    tell("nodeId", json!(row.node));
    tell("kind", json!(row.kind));
    tell("digest", shown["digest"].clone());
    tell("outcome", json!(resolution.outcome));
    tell("answerDigest", json!(questions::digest(&resolution.value)));
    if let Some(edited) = questions::accepted_edit(&resolution.value) {
        let proposed = shown.get("proposed");
        let data = &shown["data"];
        let before = proposed.or_else(|| data.get("artifactData").or_else(|| data.get("decision")));
        tell(
            "artifact",
            json!({
                "before": before.map(questions::digest),
                "after": questions::digest(&edited),
            }),
        );
    }
    let actor = &deed.actor;
    tell("by", by(deed));
    // The host's own reasons are words of ours; a person's are not told.
    if let Some(reason) = resolution
        .reason
        .as_ref()
        .filter(|_| actor.via == Via::Host)
    {
        tell("reason", json!(reason));
    }
    if !votes.is_empty() {
        let votes = votes.iter();
        let votes = votes.map(|v| json!({"voter": v.voter, "action": v.action, "at": v.at}));
        tell("votes", votes.collect());
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

fn by(deed: &Deed) -> Value {
    let Deed {
        actor, standing, ..
    } = deed;
    let mut by = json!({"via": actor.via.to_string(), "roles": &*actor.roles});
    if let Some(principal) = &actor.principal {
        by["principal"] = json!(principal);
    }
    if let Some(other) = standing.acting_for.as_ref().or(actor.acting_for.as_ref()) {
        by["actingFor"] = json!(other);
        by["rolesActedWith"] = json!(standing.roles);
    }
    if !standing.groups.is_empty() {
        by["groups"] = json!(standing.groups);
    }
    by
}
