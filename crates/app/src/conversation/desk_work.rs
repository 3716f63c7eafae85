//! Desk work on escalations: claiming, releasing and assigning them. All three need the right to resolve the
//! escalation: whoever may do the work may say whose it is.

use super::escalations::EscalationFound;
use super::manage::RESOLVE;
use super::rights::{AdminCall, key_grants};
use crate::app::App;
use crate::error::AppError;
use crate::idempotency::{Completion, Idempotency};
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{AdminRequest, DeskAction, SessionReply};
use tandem_record::{AgentId, EscalationId};
use tandem_runtime::conversation::{AdminAuthSpec, AdminSignals, KeySignal, authorize};

/// What a reader may be offered to do with the escalations of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeskRight {
    None,
    /// As this actor.
    As(String),
    /// The agent's rules know admins by something else than the key, so only the attempt tells.
    NeedsCredential,
}

impl App {
    /// Looking whether something may be offered is not doing it: nothing is recorded.
    pub fn desk_right(&self, caller: &Identity, agent: &AgentId) -> DeskRight {
        self.offered_right(caller, agent, Scope::ApprovalsRespond, RESOLVE)
    }

    /// What a reader may be offered of an action that takes this scope.
    pub(super) fn offered_right(
        &self,
        caller: &Identity,
        agent: &AgentId,
        scope: Scope,
        action: &str,
    ) -> DeskRight {
        let spec = self.agent_spec(agent);
        let auth = spec.as_ref().and_then(|spec| spec.admin_auth.as_ref());
        if caller.require_scope(scope).is_err() {
            return DeskRight::None;
        }
        match auth {
            None => DeskRight::None,
            Some(AdminAuthSpec::Data(_) | AdminAuthSpec::Code) => DeskRight::NeedsCredential,
            Some(AdminAuthSpec::BuiltinKeys { .. }) => {
                let (roles, scopes) = key_grants(caller);
                let signals = AdminSignals {
                    token: None,
                    chat: None,
                    key: Some(KeySignal {
                        principal: caller.principal.as_str(),
                        roles: &roles,
                        scopes: &scopes,
                    }),
                };
                authorize(auth, action, &signals)
                    .map_or(DeskRight::None, |actor| DeskRight::As(actor.recorded().id))
            }
        }
    }

    /// Gives an escalation to the admin who asks, to nobody, or to somebody else.
    pub async fn do_desk_work(
        &self,
        call: &AdminCall<'_>,
        escalation: EscalationId,
        action: DeskAction,
        idempotency: Idempotency<EscalationFound>,
    ) -> Result<Completion<EscalationFound>, AppError> {
        call.caller.require_scope(Scope::ApprovalsRespond)?;
        let found = self.find_escalation(call, &escalation).await?;
        let right = self
            .right_in_session(call, RESOLVE, &found.session, Some(&escalation))
            .await?;
        let request = AdminRequest::Desk { escalation, action };
        let reply = self.act(call, &found.session, right, request).await?;
        let SessionReply::Escalation(record) = reply else {
            unreachable!("unexpected reply to desk work: {reply:?}");
        };
        let changed = EscalationFound {
            record: *record,
            ..found
        };
        self.complete(idempotency, changed).await
    }
}
