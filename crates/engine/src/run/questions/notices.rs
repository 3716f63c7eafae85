//! Notices of open questions to people outside, by the host's rules.
//!
//! Each address that a rule names for a question is told once, by an effect of its own. The effect is added in the
//! commit that opens the question, or that hands it on to people of the rule, and dropped in the commit that closes it.
//! What the notice says is read when it is sent. It decides nothing.

use super::state::Suspension;
use crate::run::state::Run;
use std::collections::BTreeMap;
use tandem_record::{
    AgentId, DecisionPolicy, Effect, EffectId, EffectKind, InterruptId, TenantId, WorkspaceId,
};

/// Who is told of which questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticeRule {
    /// Whose runs they are.
    pub tenant: TenantId,
    /// `None` for all workspaces of the tenant.
    pub workspace: Option<WorkspaceId>,
    /// Kinds of questions.
    pub kinds: Vec<String>,
    /// Only questions that one of these groups or principals may answer by name; both empty for all.
    pub groups: Vec<String>,
    pub principals: Vec<String>,
    /// The agent whose transport is used.
    pub agent: AgentId,
    pub transport: String,
    /// The address on it.
    pub to: String,
}

impl NoticeRule {
    fn is_for(&self, kind: &str, policy: &DecisionPolicy) -> bool {
        let is_for_all = self.groups.is_empty() && self.principals.is_empty();
        let names_group = || {
            policy
                .groups
                .iter()
                .any(|group| self.groups.contains(group))
        };
        let names_one = || {
            let mut approvers = policy.approvers.iter();
            approvers.any(|name| self.principals.contains(name))
        };
        self.kinds.iter().any(|of| of == kind) && (is_for_all || names_group() || names_one())
    }
}

/// The notices of the questions that are open now.
pub fn required_notices(run: &Run, rules: &[NoticeRule]) -> BTreeMap<EffectId, Effect> {
    let mut notices = BTreeMap::new();
    let Some(request) = run.started_request().filter(|_| !rules.is_empty()) else {
        return notices;
    };
    let owner = &request.owner;
    for rule in rules {
        let is_elsewhere = rule.workspace.is_some() && rule.workspace != owner.workspace;
        if rule.tenant != owner.tenant || is_elsewhere {
            continue;
        }
        for (ix, open) in run.questions_for_people() {
            let interrupt = &open.interrupt;
            if rule.is_for(&interrupt.kind, &run.policy_at(ix, open)) {
                let id = notice_id(&interrupt.id, rule);
                let kind = EffectKind::NotifyPeople {
                    interrupt: interrupt.id.clone(),
                    agent: rule.agent.clone(),
                    transport: rule.transport.clone(),
                    to: rule.to.clone(),
                    attempts: 0,
                };
                notices.insert(id.clone(), Effect { id, kind });
            }
        }
    }
    notices
}

/// The same for every attempt, and for every rule that names the address.
fn notice_id(interrupt: &InterruptId, rule: &NoticeRule) -> EffectId {
    let (agent, transport, to) = (&rule.agent, &rule.transport, &rule.to);
    EffectId::from(format!("notice:{interrupt}:{agent}.{transport}:{to}"))
}

/// Whether an effect is a notice of this question.
pub(super) fn is_notice_of(open: &Suspension, effect: &EffectId) -> bool {
    let prefix = format!("notice:{}:", open.interrupt.id);
    effect.as_str().starts_with(&prefix)
}
