//! Users who write and admins who decide. They see only what a process answers, and write again when it does not.

use super::agents::{ADMIN_TRANSPORT, ADMINS, AGENTS, CANCEL, HUMAN};
use super::any_session::{act_in_takeover, start_flow};
use super::desks::{BridgeInput, act_at_desk};
use super::schedulers::manage_schedules;
use super::{Conversations, HOUSE, tenants};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tandem_record::conversation::{
    AdminActor, AdminRequest, AgentMode, DraftDecision, EscalationDecision, FlowPause,
    InboundMessage, SessionCommand, SessionReply,
};
use tandem_record::{EscalationId, MediaId, MessageId, Owner, ProxyId, RunId, SessionId, TenantId};
use tandem_runtime::conversation::{
    MediaContent, MessageClaim, NewMessage, ReceivedMessage, SessionRefusal,
};
use tandem_runtime::{InterruptFilter, Page, Runtime, SubmitError};
use tandem_store::InterruptRow;
use tokio::task::JoinSet;

const USERS: [&str; 2] = ["ulla", "uwe"];
pub(super) const USER_TRANSPORT: &str = "loopback";
/// Messages of one user, without the last.
const MESSAGES: u32 = 10;

/// A message somebody wrote, and what they were told.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub(super) tenant: TenantId,
    pub(super) agent: &'static str,
    pub(super) transport: &'static str,
    pub(super) from: String,
    pub(super) id: MessageId,
    pub(super) body: String,
    pub(super) claims: Vec<MessageClaim>,
    /// The message before it, if that was accepted before this one was written.
    pub(super) after: Option<MessageId>,
    /// Somebody delivered it until it was accepted.
    pub(super) is_accepted: bool,
}

/// A decision about an escalation, and the answer to it.
#[derive(Clone, Debug)]
pub(super) struct Decided {
    pub(super) escalation: EscalationId,
    pub(super) by: String,
    /// Unique, so that the winner is known.
    pub(super) message: String,
    /// Whether it was accepted, or refused because another one came first; `None` when nobody knows.
    pub(super) accepted: Option<bool>,
}

#[derive(Default)]
pub(super) struct Observed {
    pub(super) messages: Vec<Written>,
    pub(super) decisions: Vec<Decided>,
    /// Accepted for bridges.
    pub(super) inputs: Vec<BridgeInput>,
    /// Bridges that admins were shown.
    pub(super) bridges: BTreeMap<ProxyId, SessionId>,
}

pub(super) fn start_users(sim: &Arc<Conversations>, rng: &mut SmallRng) -> JoinSet<()> {
    let mut users = JoinSet::new();
    for tenant in tenants() {
        for agent in AGENTS {
            let is_house = tenant.as_str() == HOUSE;
            for user in USERS.into_iter().take(if is_house { 1 } else { 2 }) {
                // One user is enough for a crash at each commit.
                let talks = sim.crash_at.is_none() || users.is_empty();
                if talks && rng.random_bool(0.7) {
                    let rng = SmallRng::seed_from_u64(rng.random());
                    users.spawn(talk(Arc::clone(sim), tenant.clone(), agent, user, rng));
                }
            }
        }
    }
    users
}

pub(super) fn start_admins(sim: &Arc<Conversations>, rng: &mut SmallRng) -> JoinSet<()> {
    let mut admins = JoinSet::new();
    // Those of one user are enough for a crash at each commit.
    let count = if sim.crash_at.is_some() { 1 } else { 3 };
    for tenant in tenants().into_iter().take(count) {
        for admin in ADMINS {
            let rng = SmallRng::seed_from_u64(rng.random());
            admins.spawn(decide(Arc::clone(sim), tenant.clone(), admin, rng));
        }
    }
    admins
}

fn text(tenant: &TenantId, rng: &mut SmallRng) -> String {
    let flow = rng.random_range(0..4);
    match rng.random_range(0..24) {
        0..6 => format!("start f{flow}"),
        6..9 => format!("/flow f{flow}"),
        9..13 => "yes".to_owned(),
        13 | 14 => "no".to_owned(),
        15 => HUMAN.to_owned(),
        16 => CANCEL.to_owned(),
        17 => ["stop", "go", "/usage", "/help", "/reset"][rng.random_range(0..5)].to_owned(),
        // Something that is said.
        18 => String::new(),
        _ => format!("{tenant} {}", rng.random_range(0..1_000)),
    }
}

/// One user: sometimes in bursts, sometimes after a long time.
async fn talk(
    sim: Arc<Conversations>,
    tenant: TenantId,
    agent: &'static str,
    user: &'static str,
    mut rng: SmallRng,
) {
    let mut sending = JoinSet::new();
    let mut accepted: Option<MessageId> = None;
    for n in 0..rng.random_range(2..MESSAGES) {
        let pause = match rng.random_range(0..20) {
            0..8 => rng.random_range(0..200),
            8..18 => rng.random_range(500..15_000),
            _ => rng.random_range(60_000..200_000),
        };
        tokio::time::sleep(Duration::from_millis(pause)).await;
        // The same ids for both tenants.
        let id = MessageId::from(format!("m-{agent}-{user}-{n}"));
        let written = Written {
            tenant: tenant.clone(),
            agent,
            transport: USER_TRANSPORT,
            from: user.to_owned(),
            id: id.clone(),
            body: text(&tenant, &mut rng),
            claims: Vec::new(),
            after: accepted.clone(),
            is_accepted: false,
        };
        let place = write(&sim, written);
        let copies = if rng.random_bool(0.15) {
            rng.random_range(2..4)
        } else {
            1
        };
        for _ in 0..copies {
            let rng = SmallRng::seed_from_u64(rng.random());
            sending.spawn(deliver(Arc::clone(&sim), place, rng));
        }
        if rng.random_bool(0.7) {
            while sending.join_next().await.is_some() {}
            accepted = Some(id);
        }
    }
    while sending.join_next().await.is_some() {}
}

fn write(sim: &Conversations, written: Written) -> usize {
    let mut observed = sim.observed.lock();
    observed.messages.push(written);
    observed.messages.len() - 1
}

/// Delivers a message until a process has it, perhaps to several processes at once, and perhaps once more.
async fn deliver(sim: Arc<Conversations>, place: usize, mut rng: SmallRng) {
    let written = sim.observed.lock().messages[place].clone();
    let mut again = rng.random_bool(0.1);
    loop {
        let runtime = sim.any_runtime(&mut rng);
        let new = new_message(&runtime, &written);
        // A transport gives up waiting; its request goes on.
        let asked = tokio::spawn(async move { runtime.receive_message(new).await });
        let patience = Duration::from_millis(rng.random_range(3_000..40_000));
        if let Ok(Ok(Ok(received))) = tokio::time::timeout(patience, asked).await {
            let (ReceivedMessage::Accepted(claim) | ReceivedMessage::Duplicate(claim)) = received;
            let message = &mut sim.observed.lock().messages[place];
            message.claims.push(claim);
            message.is_accepted = true;
            if !std::mem::take(&mut again) {
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(10..3_000))).await;
    }
}

fn new_message(runtime: &Runtime, written: &Written) -> NewMessage {
    let is_speech = written.body.is_empty();
    let content = MediaContent {
        content_type: "audio/ogg".to_owned(),
        bytes: b"yes".to_vec(),
    };
    let media = MediaId::new(format!("in-{}", written.id));
    NewMessage {
        attachment: is_speech.then(|| (media.clone(), content)),
        agent: written.agent.into(),
        transport: written.transport.to_owned(),
        owner: Owner {
            tenant: written.tenant.clone(),
            workspace: None,
            principal: None,
        },
        message: InboundMessage {
            message_id: written.id.clone(),
            from: written.from.clone(),
            body: written.body.clone(),
            kind: is_speech.then(|| "voice".to_owned()),
            sender_profile: None,
            media: is_speech.then(|| json!({"id": media, "bytes": 3})),
            client_id: None,
            quoted_id: None,
            relayed: false,
            received_at: runtime.clock().now(),
            sent_at: None,
        },
    }
}

/// One admin: decides what is open by one of several routes, and now and then does something else.
async fn decide(sim: Arc<Conversations>, tenant: TenantId, admin: &'static str, mut rng: SmallRng) {
    let mut count = 0;
    loop {
        let (from, to) = if sim.is_recovering() {
            (5_000, 20_000)
        } else {
            (500, 25_000)
        };
        tokio::time::sleep(Duration::from_millis(rng.random_range(from..to))).await;
        count += 1;
        let rng = SmallRng::seed_from_u64(rng.random());
        let acts = act(Arc::clone(&sim), tenant.clone(), admin, count, rng);
        // An answer that never comes must not stop the admin.
        drop(tokio::time::timeout(Duration::from_secs(30), tokio::spawn(acts)).await);
    }
}

async fn act(
    sim: Arc<Conversations>,
    tenant: TenantId,
    admin: &'static str,
    count: u32,
    mut rng: SmallRng,
) {
    let runtime = sim.any_runtime(&mut rng);
    let filter = InterruptFilter {
        open: Some(true),
        ..InterruptFilter::default()
    };
    let page = Page {
        before: None,
        limit: 100,
    };
    let Ok(listing) = runtime.questions(&tenant, &filter, &page).await else {
        return;
    };
    let open: Vec<InterruptRow> = listing.rows.into_iter().map(|(_, row)| row).collect();
    if rng.random_bool(0.1) && !sim.is_recovering() {
        return start_flow(&runtime, &tenant, admin, &mut rng).await;
    }
    let mut own = rng.clone();
    if own.random_bool(0.2) && !sim.is_recovering() {
        return act_in_takeover(&runtime, &tenant, admin, count, &mut own).await;
    }
    if own.random_bool(0.3) {
        return act_at_desk(&sim, &tenant, admin, &mut own).await;
    }
    if own.random_bool(0.1) && !sim.is_recovering() {
        return manage_schedules(&sim, &tenant, admin, &mut own).await;
    }
    if open.is_empty() {
        return;
    }
    let row = &open[rng.random_range(0..open.len())];
    let request = match (row.run_and_node(), row.stream.session()) {
        (Some((run, _)), _) if run.is_flow_run() => of_flow(&runtime, &run, &mut rng).await,
        (None, Some(session)) => of_session(&runtime, session, row, &mut rng).await,
        _ => None,
    };
    let Some((session, request)) = request else {
        return;
    };
    let request = match rng.random_range(0..40) {
        0 if !sim.is_recovering() => AdminRequest::AbortFlow,
        1 if !sim.is_recovering() => AdminRequest::EndSession,
        2 if !sim.is_recovering() => AdminRequest::SetMode {
            mode: [AgentMode::Auto, AgentMode::DraftOnly, AgentMode::Off][rng.random_range(0..3)],
        },
        _ => request,
    };
    if let AdminRequest::Resolve {
        escalation: Some(escalation),
        ..
    } = &request
    {
        let route = rng.random_range(0..3);
        let by = format!("{tenant}-{admin}-{count}");
        return resolve(
            &sim, &runtime, &tenant, admin, &by, session, escalation, route, &mut rng,
        )
        .await;
    }
    // Faults and refusals: somebody tries again later.
    let command = SessionCommand::Act {
        actor: actor(admin),
        request,
    };
    drop(runtime.submit_to_session(&session, command).await);
}

pub(super) fn actor(admin: &str) -> AdminActor {
    AdminActor {
        id: admin.to_owned(),
        role: None,
        channel: "ui_api".to_owned(),
        metadata: None,
    }
}

type Request = Option<(SessionId, AdminRequest)>;

fn resolution_of(escalation: &EscalationId) -> AdminRequest {
    AdminRequest::Resolve {
        escalation: Some(escalation.clone()),
        decision: EscalationDecision {
            approved: true,
            message: None,
            action_data: None,
            claimed_by: None,
        },
    }
}

/// The question of a flow, as a person finds it in the inbox.
async fn of_flow(runtime: &Runtime, run: &RunId, rng: &mut SmallRng) -> Request {
    let flow_run = runtime.read_flow_run(run).await.ok()??;
    let session = flow_run.start()?.session_id.clone()?;
    let request = match flow_run.pause()? {
        FlowPause::Wait {
            escalation_id: Some(escalation),
            ..
        } => resolution_of(escalation),
        FlowPause::Ask { interrupt_id, .. } | FlowPause::Confirm { interrupt_id, .. }
            if rng.random_bool(0.2) =>
        {
            AdminRequest::AnswerForUser {
                interrupt: interrupt_id.clone(),
                value: json!("yes"),
            }
        }
        _ => return None,
    };
    Some((session, request))
}

/// A held text, or an escalation that no flow waits for.
async fn of_session(
    runtime: &Runtime,
    session: SessionId,
    row: &InterruptRow,
    rng: &mut SmallRng,
) -> Request {
    let current = runtime.read_session(&session).await.ok()??;
    let escalation = EscalationId::new(row.interrupt.as_str());
    if current.escalation(&escalation).is_some() {
        return Some((session, resolution_of(&escalation)));
    }
    let decision = match rng.random_range(0..4) {
        0 => DraftDecision::Reject,
        1 => DraftDecision::Edit(format!("{} edited", current.start().owner.tenant)),
        _ => DraftDecision::Accept,
    };
    let draft = row.interrupt.clone();
    Some((session, AdminRequest::DecideDraft { draft, decision }))
}

#[expect(
    clippy::too_many_arguments,
    reason = "one decision with everything about it"
)]
async fn resolve(
    sim: &Arc<Conversations>,
    runtime: &Runtime,
    tenant: &TenantId,
    admin: &'static str,
    message: &str,
    session: SessionId,
    escalation: &EscalationId,
    route: u32,
    rng: &mut SmallRng,
) {
    if route == 0 {
        let word = ["approve", "reject"][rng.random_range(0..2)];
        let agent = runtime.read_session(&session).await;
        let Ok(Some(current)) = agent else { return };
        let agent = AGENTS
            .into_iter()
            .find(|id| current.start().agent_id.as_str() == *id);
        let place = write(
            sim,
            Written {
                tenant: tenant.clone(),
                agent: agent.expect("a known agent"),
                transport: ADMIN_TRANSPORT,
                from: admin.to_owned(),
                id: MessageId::from(format!("c-{message}")),
                body: format!("/resolve {escalation} {word} {message}"),
                claims: Vec::new(),
                after: None,
                is_accepted: false,
            },
        );
        let rng = SmallRng::seed_from_u64(rng.random());
        return deliver(Arc::clone(sim), place, rng).await;
    }
    let decision = EscalationDecision {
        approved: rng.random_bool(0.6),
        message: Some(message.to_owned()),
        action_data: None,
        claimed_by: None,
    };
    let place = {
        let mut observed = sim.observed.lock();
        observed.decisions.push(Decided {
            escalation: escalation.clone(),
            by: admin.to_owned(),
            message: message.to_owned(),
            accepted: None,
        });
        observed.decisions.len() - 1
    };
    // By the escalation, or by the session it belongs to.
    let named = (route == 1).then(|| escalation.clone());
    let tries = if rng.random_bool(0.2) { 2 } else { 1 };
    for _ in 0..tries {
        let command = SessionCommand::Act {
            actor: actor(admin),
            request: AdminRequest::Resolve {
                escalation: named.clone(),
                decision: decision.clone(),
            },
        };
        let accepted = match runtime.submit_to_session(&session, command).await {
            Ok(Ok(SessionReply::Escalation(decided))) => {
                // A session's open escalation may be another one by now.
                sim.observed.lock().decisions[place].escalation = decided.id.clone();
                Some(true)
            }
            Ok(Ok(other)) => {
                let what = format!("a decision is answered with {other:?}");
                sim.outside.violation(what);
                None
            }
            Ok(Err(SessionRefusal::AlreadyResolved(_))) => Some(false),
            Ok(Err(_)) | Err(SubmitError::Fault(_)) => None,
            Err(other) => {
                sim.outside
                    .violation(format!("a decision is refused: {other}"));
                None
            }
        };
        sim.observed.lock().decisions[place].accepted = accepted;
    }
}
