//! Who an admin is and what they may do. The only place that grants a privileged operation over the API:
//! `resolveActor`, then `can`, by the rules of the session's agent (Z-143 to Z-149).

use super::submit_error;
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tandem_access::Identity;
use tandem_record::conversation::{
    AdminActor, AdminRequest, AgentLevelEvent, AgentLevelEventBody, AuthorizationDecision,
    CodeCall, CodeOutcome, SessionCommand, SessionView,
};
use tandem_record::{AgentId, EffectId, EscalationId, Object, ProxyId, SessionId};
use tandem_runtime::conversation::{
    AdminAuthSpec, AdminSignals, AgentSpec, AuthzDenial, CallContext, ChatSignal, KeySignal,
    ResolvedActor, allows, authorize,
};

/// The header of the token that rules written as data look for.
pub const ADMIN_TOKEN: &str = "x-admin-token";

/// A call of an admin as an entry point received it.
pub struct AdminCall<'a> {
    pub caller: &'a Identity,
    /// All headers of the request, by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// How a session is shown to the rules of an agent: like to any reader.
    pub show_session: fn(&SessionView) -> Value,
    /// Who acts, where a network knows it: they have no key.
    pub chat: Option<ChatSignal<'a>>,
}

/// What an admin wants to do, and to what.
pub(super) struct PrivilegedAction<'a> {
    pub(super) action: &'a str,
    pub(super) agent: &'a AgentId,
    /// The session it is about, as readers see it.
    pub(super) session: Option<(&'a SessionId, Value)>,
    pub(super) escalation: Option<&'a EscalationId>,
}

/// The bridge that an action is about.
pub(super) struct BridgeRight<'a> {
    pub(super) proxy: &'a ProxyId,
    /// Who may, of those with the right; `None` for everybody.
    pub(super) allowed_actors: Option<&'a [String]>,
}

/// An action that the agent's rules allow. The log has their answer in the commit of what it allows, or in one of
/// its own where nothing follows.
#[must_use = "the log needs the answer"]
pub(super) struct GrantedRight {
    pub(super) actor: AdminActor,
    pub(super) decision: Box<AuthorizationDecision>,
}

impl GrantedRight {
    /// The command for an action that this allows.
    pub(super) fn allowing(&self, request: AdminRequest) -> SessionCommand {
        let actor = self.actor.clone();
        SessionCommand::Authorized {
            decision: self.decision.clone(),
            command: Box::new(SessionCommand::Act { actor, request }),
        }
    }
}

impl App {
    /// Resolves the actor and checks the right, for reading or for something outside sessions. The answer is in
    /// the log before anything follows from it.
    pub(super) async fn authorize_admin(
        &self,
        call: &AdminCall<'_>,
        asked: &PrivilegedAction<'_>,
    ) -> Result<AdminActor, AppError> {
        let granted = self.check_right(call, asked, None).await?;
        self.record_right(call, asked, *granted.decision).await?;
        Ok(granted.actor)
    }

    /// The rows of agents on which the admin has a right. Somebody who asks for an agent is told that they may not, also
    /// when it has no row.
    pub(super) async fn rows_with_right<T>(
        &self,
        call: &AdminCall<'_>,
        action: &str,
        named: Option<AgentId>,
        rows: Vec<T>,
        agent_of: impl Fn(&T) -> &AgentId,
    ) -> Result<Vec<T>, AppError> {
        let found = rows.iter().map(|row| agent_of(row).clone());
        let agents: BTreeSet<AgentId> = named.into_iter().chain(found).collect();
        let mut rights: BTreeMap<AgentId, Result<(), AppError>> = BTreeMap::new();
        for agent in agents {
            let asked = PrivilegedAction {
                action,
                agent: &agent,
                session: None,
                escalation: None,
            };
            let right = self.authorize_admin(call, &asked).await.map(|_| ());
            rights.insert(agent, right);
        }
        let is_allowed = |row: &T| rights.get(agent_of(row)).is_some_and(Result::is_ok);
        let visible: Vec<_> = rows.into_iter().filter(is_allowed).collect();
        let denial = rights.into_values().find_map(Result::err);
        match denial.filter(|_| visible.is_empty()) {
            Some(denial) => Err(denial),
            None => Ok(visible),
        }
    }

    /// Resolves the actor and checks the right, of a bridge too, which may let only certain actors write. A denial is
    /// in the log when this returns.
    pub(super) async fn check_right(
        &self,
        call: &AdminCall<'_>,
        asked: &PrivilegedAction<'_>,
        bridge: Option<&BridgeRight<'_>>,
    ) -> Result<GrantedRight, AppError> {
        let decided = self.decide_right(call, asked).await;
        let allowed = bridge.and_then(|bridge| bridge.allowed_actors);
        let decided = match decided {
            Ok(actor) if allowed.is_some_and(|allowed| !allowed.contains(&actor.id)) => {
                Err((Some(actor), AuthzDenial::Forbidden))
            }
            decided => decided,
        };
        let proxy_id = bridge.map(|bridge| bridge.proxy.clone());
        match decided {
            Ok(actor) => {
                let actor = actor.recorded();
                let decision = Box::new(AuthorizationDecision {
                    proxy_id,
                    ..recorded(call, asked, Some(actor.clone()), None)
                });
                Ok(GrantedRight { actor, decision })
            }
            Err((actor, denial)) => {
                let signal = match actor {
                    Some(_) => None,
                    None => signals(call).digest(),
                };
                let actor = actor.map(|actor| actor.recorded());
                let decision = AuthorizationDecision {
                    signal,
                    proxy_id,
                    ..recorded(call, asked, actor, Some(denial))
                };
                self.record_right(call, asked, decision).await?;
                Err(AppError::AdminDenied(denial))
            }
        }
    }

    /// The answer without recording it.
    async fn decide_right(
        &self,
        call: &AdminCall<'_>,
        asked: &PrivilegedAction<'_>,
    ) -> Result<ResolvedActor, (Option<ResolvedActor>, AuthzDenial)> {
        let agent = self.agent_spec(asked.agent);
        let auth = agent.as_ref().and_then(|agent| agent.admin_auth.as_ref());
        if auth == Some(&AdminAuthSpec::Code)
            && let Some(agent) = &agent
        {
            return self.decide_by_code(call, asked, agent).await;
        }
        let (roles, scopes) = key_grants(call.caller);
        let key = KeySignal {
            principal: call.caller.principal.as_str(),
            roles: &roles,
            scopes: &scopes,
        };
        let signals = AdminSignals {
            // The key of a transport is nobody's.
            key: Some(key).filter(|_| call.chat.is_none()),
            ..signals(call)
        };
        authorize(auth, asked.action, &signals).map_err(|denial| {
            let known = auth.filter(|_| denial == AuthzDenial::Forbidden);
            let actor =
                known.and_then(|auth| tandem_runtime::conversation::resolve_actor(auth, &signals));
            (actor, denial)
        })
    }

    /// The rules are functions of the agent. Whatever they do but answer is a denial.
    async fn decide_by_code(
        &self,
        call: &AdminCall<'_>,
        asked: &PrivilegedAction<'_>,
        agent: &Arc<AgentSpec>,
    ) -> Result<ResolvedActor, (Option<ResolvedActor>, AuthzDenial)> {
        // As the chat adapter and the API have it.
        let request = match call.chat {
            Some(chat) => json!({"inbound": {"from": chat.address, "transport": chat.transport}}),
            None => json!({"request": {"headers": call.headers}}),
        };
        let resolved = self
            .call_rule(call, asked, agent, "adminAuth.resolveActor", vec![request])
            .await;
        let answer = resolved.map_err(|denial| (None, denial))?;
        let actor = ResolvedActor::from_answer(&answer, &signals(call).channel());
        let actor = actor.ok_or((None, AuthzDenial::NoActor))?;
        let session = asked.session.as_ref().map(|(_, shown)| shown.clone());
        let args = vec![
            json!(asked.action),
            json!(actor),
            session.unwrap_or_default(),
        ];
        match self
            .call_rule(call, asked, agent, "adminAuth.can", args)
            .await
        {
            Ok(answer) if allows(&answer) => Ok(actor),
            Ok(Value::Bool(false)) => Err((Some(actor), AuthzDenial::Forbidden)),
            Ok(_) => Err((Some(actor), AuthzDenial::Error)),
            Err(denial) => Err((Some(actor), denial)),
        }
    }

    async fn call_rule(
        &self,
        call: &AdminCall<'_>,
        asked: &PrivilegedAction<'_>,
        agent: &Arc<AgentSpec>,
        path: &str,
        args: Vec<Value>,
    ) -> Result<Value, AuthzDenial> {
        let Some(conversations) = self.runtime().conversations() else {
            return Err(AuthzDenial::NoAuthConfig);
        };
        let context = CallContext {
            tenant: call.caller.tenant.clone(),
            agent: asked.agent.clone(),
            session: asked.session.as_ref().map(|(id, _)| (*id).clone()),
            key: EffectId::new(uuid::Uuid::new_v4().to_string()),
            data: Object::new(),
            kv: BTreeMap::new(),
            messages: Arc::from([]),
            trace: None,
            actor: None,
            now: self.now(),
        };
        let code = CodeCall {
            path: path.to_owned(),
            args,
            timeout_ms: agent.timeouts.hook_ms,
        };
        let CodeOutcome { value, error, .. } =
            conversations.agents().call_code(&code, &context).await;
        match error {
            Some(error) if error.code == "timeout" => Err(AuthzDenial::Timeout),
            Some(_) => Err(AuthzDenial::Error),
            None => Ok(value.unwrap_or_default()),
        }
    }

    /// Writes the answer to the session's log; where there is no session, to those of the agent and of audits.
    async fn record_right(
        &self,
        call: &AdminCall<'_>,
        asked: &PrivilegedAction<'_>,
        decision: AuthorizationDecision,
    ) -> Result<(), AppError> {
        let Some((session, _)) = &asked.session else {
            let name = match decision.granted {
                true => "admin.authz.granted",
                false => "admin.authz.denied",
            };
            let details = match json!(decision) {
                Value::Object(fields) => fields,
                _ => Object::new(),
            };
            let runtime = self.runtime_for(call.caller);
            let tenant = Some(&call.caller.tenant);
            runtime
                .record_audit_entry(tenant, name, asked.agent.as_str(), details)
                .await?;
            if !decision.granted {
                self.runtime().metrics().conversations.denied();
            }
            let event = AgentLevelEvent {
                workspace: call.caller.workspace.clone(),
                actor: decision.actor.clone(),
                body: AgentLevelEventBody::AuthorizationDecided(Box::new(decision)),
            };
            let (tenant, agent) = (&call.caller.tenant, asked.agent);
            self.runtime()
                .note_agent_event(tenant, agent, event)
                .await?;
            return Ok(());
        };
        self.record_in_session(session, Box::new(decision)).await
    }

    /// Writes an answer of the rules that nothing follows from.
    pub(super) async fn record_in_session(
        &self,
        session: &SessionId,
        decision: Box<AuthorizationDecision>,
    ) -> Result<(), AppError> {
        let command = SessionCommand::RecordAuthorization(decision);
        let recorded = self.runtime().submit_to_session(session, command).await;
        let recorded = recorded.map_err(|error| submit_error(error, ResourceKind::Session))?;
        recorded.map_err(AppError::from)?;
        Ok(())
    }

    pub(super) fn agent_spec(&self, agent: &AgentId) -> Option<Arc<AgentSpec>> {
        self.runtime().conversations()?.agents().agent(agent)
    }
}

pub(super) fn signals<'a>(call: &'a AdminCall<'_>) -> AdminSignals<'a> {
    AdminSignals {
        token: call.headers.get(ADMIN_TOKEN).map(String::as_str),
        chat: call.chat,
        key: None,
    }
}

/// The roles and scopes of the caller's key.
pub(super) fn key_grants(caller: &Identity) -> (Vec<String>, Vec<String>) {
    let scopes = caller.scopes.iter().map(|scope| scope.as_str().to_owned());
    (caller.roles.to_vec(), scopes.collect())
}

fn recorded(
    call: &AdminCall<'_>,
    asked: &PrivilegedAction<'_>,
    actor: Option<AdminActor>,
    denial: Option<AuthzDenial>,
) -> AuthorizationDecision {
    let reason = denial.map(|denial| json!(denial));
    AuthorizationDecision {
        granted: denial.is_none(),
        action: asked.action.to_owned(),
        actor,
        signal: None,
        escalation_id: asked.escalation.cloned(),
        proxy_id: None,
        reason: reason.and_then(|reason| reason.as_str().map(str::to_owned)),
        adapter: signals(call).channel(),
    }
}
