//! Admins of desks: they write for bridges, in the chat of a desk and over the API, and stop them.

use super::Conversations;
use super::people::actor;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::Duration;
use tandem_record::conversation::{
    AdminRequest, AuthorizationDecision, InboundMessage, ProxyStatus, SessionCommand,
};
use tandem_record::{MessageId, Owner, ProxyId, TenantId};
use tandem_runtime::conversation::{
    AgentSpec, DeskMessage, DeskQuery, MessageClaim, NewMessage, ReceivedInput, ReceivedMessage,
};
use tandem_runtime::{Runtime, SubmitError};
use tandem_store::{ListingPage, ProxyFilter, ProxyRow};
use tokio::task::JoinSet;

/// Ids of the messages for one bridge: few, so that they repeat.
const MESSAGES: u32 = 8;
const ATTEMPTS: u32 = 20;

/// A text that was accepted for a bridge, and what its writer was told.
#[derive(Clone, Debug)]
pub(super) struct BridgeInput {
    pub(super) proxy: ProxyId,
    pub(super) id: MessageId,
    pub(super) claim: MessageClaim,
}

/// A text on its way to a bridge.
#[derive(Clone)]
struct Draft {
    row: ProxyRow,
    id: MessageId,
    text: String,
    route: Route,
}

#[derive(Clone)]
enum Route {
    Api {
        admin: &'static str,
    },
    /// Somebody writes in the chat of the desk, perhaps in reply to a message.
    Chat {
        quoted: Option<String>,
    },
}

/// Picks a bridge, mostly an active one, and writes for it or stops it.
pub(super) async fn act_at_desk(
    sim: &Arc<Conversations>,
    tenant: &TenantId,
    admin: &'static str,
    rng: &mut SmallRng,
) {
    let runtime = sim.any_runtime(rng);
    let Some(row) = pick_bridge(sim, &runtime, tenant, rng).await else {
        return;
    };
    if rng.random_bool(0.1) {
        let command = SessionCommand::Act {
            actor: actor(admin),
            request: AdminRequest::StopProxy {
                proxy: row.proxy_id.clone(),
                reason: None,
            },
        };
        // It may have been stopped before.
        return drop(runtime.submit_to_session(&row.session_id, command).await);
    }
    let id = MessageId::from(format!(
        "b-{}-{}",
        row.proxy_id,
        rng.random_range(0..MESSAGES)
    ));
    let text = format!("{tenant} {admin} {}", rng.random_range(0..1_000));
    let draft = match rng.random_bool(0.5) {
        true => Draft {
            row,
            id,
            text,
            route: Route::Api { admin },
        },
        false => in_chat(sim, row, id, text, rng),
    };
    let mut sending = JoinSet::new();
    for _ in 0..rng.random_range(1..3) {
        let rng = SmallRng::seed_from_u64(rng.random());
        sending.spawn(deliver(Arc::clone(sim), draft.clone(), rng));
    }
    while sending.join_next().await.is_some() {}
}

async fn pick_bridge(
    sim: &Conversations,
    runtime: &Runtime,
    tenant: &TenantId,
    rng: &mut SmallRng,
) -> Option<ProxyRow> {
    let page = ListingPage {
        after: None,
        limit: 100,
    };
    let filter = ProxyFilter::default();
    let listed = runtime.store().list_proxies(tenant, &filter, &page).await;
    let mut rows = listed.ok()??.rows;
    sim.observed.lock().bridges.extend(
        rows.iter()
            .map(|row| (row.proxy_id.clone(), row.session_id.clone())),
    );
    let is_active = |row: &ProxyRow| row.status == ProxyStatus::Active;
    if rng.random_bool(0.85) && rows.iter().any(is_active) {
        rows.retain(is_active);
    }
    let place = rng.random_range(0..rows.len().max(1));
    rows.into_iter().nth(place)
}

/// The message quotes one of the bridge, names the bridge by its number, or does neither.
fn in_chat(
    sim: &Conversations,
    row: ProxyRow,
    id: MessageId,
    mut text: String,
    rng: &mut SmallRng,
) -> Draft {
    let mut quoted = None;
    match rng.random_range(0..3) {
        0 => {
            let happened = sim.outside.happened.lock();
            let mut sent = happened.texts.iter().map(|text| text.key.to_string());
            quoted = sent.rfind(|key| key.starts_with(row.proxy_id.as_str()));
        }
        1 => text = format!("#{} {text}", row.proxy_id.short()),
        _ => {}
    }
    Draft {
        row,
        id,
        text,
        route: Route::Chat { quoted },
    }
}

/// Delivers a text until somebody takes or refuses it.
async fn deliver(sim: Arc<Conversations>, draft: Draft, mut rng: SmallRng) {
    for _ in 0..ATTEMPTS {
        let runtime = sim.any_runtime(&mut rng);
        let (outside, written) = (Arc::clone(&sim.outside), draft.clone());
        let asked = tokio::spawn(async move {
            let agent = outside.spec(&written.row.agent);
            written.put_to(&runtime, agent).await
        });
        let patience = Duration::from_millis(rng.random_range(3_000..40_000));
        if let Ok(Ok(Ok(accepted))) = tokio::time::timeout(patience, asked).await {
            return sim.observed.lock().inputs.extend(accepted);
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(10..3_000))).await;
    }
}

impl Draft {
    async fn put_to(
        &self,
        runtime: &Runtime,
        agent: &AgentSpec,
    ) -> Result<Option<BridgeInput>, SubmitError> {
        let accepted = match &self.route {
            Route::Api { admin } => self.over_api(runtime, admin).await?,
            Route::Chat { quoted } => self.in_chat(runtime, agent, quoted.as_deref()).await?,
        };
        Ok(accepted.map(|(proxy, claim)| BridgeInput {
            proxy,
            id: self.id.clone(),
            claim,
        }))
    }

    async fn over_api(&self, runtime: &Runtime, admin: &str) -> Accepted {
        let (id, text) = (self.id.clone(), self.text.clone());
        let actor = actor(admin);
        let decision = Box::new(AuthorizationDecision {
            granted: true,
            action: "hitl.proxy.input".to_owned(),
            actor: Some(actor.clone()),
            signal: None,
            escalation_id: None,
            proxy_id: Some(self.row.proxy_id.clone()),
            reason: None,
            adapter: actor.channel.clone(),
        });
        let received = runtime.receive_proxy_input(&self.row, (actor, decision), id, text);
        Ok(match received.await? {
            Ok(ReceivedInput::Accepted(claim)) => Some((self.row.proxy_id.clone(), claim)),
            // The bridge has ended, or has too much input.
            Ok(ReceivedInput::Duplicate) | Err(_) => None,
        })
    }

    async fn in_chat(
        &self,
        runtime: &Runtime,
        agent: &AgentSpec,
        quoted_id: Option<&str>,
    ) -> Accepted {
        let row = &self.row;
        let owner = Owner {
            tenant: row.tenant.clone(),
            workspace: None,
            principal: None,
        };
        let query = DeskQuery {
            owner: &owner,
            agent: &row.agent,
            transport: &row.transport,
            from: &row.address,
            message_id: &self.id,
            text: &self.text,
            quoted_id,
            relayed: false,
        };
        let DeskMessage::Input { bridge, text, .. } = runtime.desk_message(agent, &query).await?
        else {
            return Ok(None);
        };
        let message = NewMessage {
            agent: row.agent.clone(),
            transport: row.transport.clone(),
            owner: owner.clone(),
            attachment: None,
            message: InboundMessage {
                message_id: self.id.clone(),
                from: row.address.clone(),
                body: self.text.clone(),
                kind: None,
                sender_profile: None,
                media: None,
                client_id: None,
                quoted_id: quoted_id.map(str::to_owned),
                relayed: false,
                received_at: runtime.clock().now(),
                sent_at: None,
            },
        };
        let received = runtime.receive_desk_message(message, &bridge, text).await?;
        Ok(received.and_then(|received| match received {
            ReceivedMessage::Accepted(claim) => Some((bridge.proxy_id.clone(), claim)),
            // It may have been for another bridge when it came first.
            ReceivedMessage::Duplicate(_) => None,
        }))
    }
}

type Accepted = Result<Option<(ProxyId, MessageClaim)>, SubmitError>;
