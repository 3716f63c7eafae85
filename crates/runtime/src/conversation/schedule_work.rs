//! Performs the work of schedules: finds the users of segments, and begins the turns of users in their sessions.

use super::receive::MessageClaim;
use super::schedule_driver::ScheduleOutcome;
use super::session_driver::AGENT_UNAVAILABLE;
use super::settings::Conversations;
use super::workflow_flows::Unstarted;
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::transact::TransactionParts;
use crate::transaction::Transaction;
use std::collections::BTreeSet;
use std::sync::Arc;
use tandem_engine::chat_user::{AgentUser, user_id};
use tandem_engine::schedule::{ActiveRun, Schedule, UserFacts, UserQuery};
use tandem_engine::session::SessionRefusal;
use tandem_record::conversation::{
    FlowCall, FlowTarget, ListedChatUser, OnActiveFlow, RecipientRecord, ScheduleCommand,
    ScheduleRecord, ScheduleStatus, ScheduleWork, ScheduledOutcome, ScheduledStart, ScheduledTurn,
    SegmentSelector, SessionCommand, SessionReply,
};
use tandem_record::{
    AgentId, FlowId, MessageId, Partition, ScheduleRunId, SessionId, StreamId, Timestamp,
};
use tandem_store::{
    ChatUserFilter, ChatUserRow, Fault, IdempotencyKey, IdempotencyRecord, ListingPage,
    StoredResponse,
};

/// The most users of one campaign.
const MAX_RECIPIENTS: usize = 100_000;
const USERS_PAGE: usize = 500;
const DAY_MS: u64 = 86_400_000;
/// The transport under which ids of scheduled turns are claimed.
const SCHEDULE_TRANSPORT: &str = "schedule";
/// Sessions that ended while a turn was brought to them.
const MAX_ATTEMPTS: usize = 4;

/// How a user ends without a turn.
type Unmade = (ScheduledOutcome, String);

impl Runtime {
    pub(super) async fn perform_schedule_work(
        &self,
        driver: &MachineDriver<Schedule>,
        work: &LeasedEffect<ScheduleWork>,
    ) -> Result<ScheduleOutcome, Fault> {
        let ScheduleWork::ResolveSegment { run_id } = &work.effect.kind else {
            return Ok(ScheduleOutcome::Start);
        };
        let schedule = self.read_machine(driver, &work.stream).await?;
        let found = schedule
            .as_ref()
            .and_then(|schedule| Some((schedule.record()?, schedule.run(run_id)?)));
        let Some((record, run)) = found else {
            return Ok(ScheduleOutcome::Segment(Ok(Vec::new())));
        };
        let users = self.users_of_segment(record, run).await?;
        Ok(ScheduleOutcome::Segment(users))
    }

    /// The users of a segment as they are now, in order of their ids.
    async fn users_of_segment(
        &self,
        record: &ScheduleRecord,
        run: &ActiveRun,
    ) -> Result<Result<Vec<String>, String>, Fault> {
        let campaign = run.definition.target.campaign();
        let Some((campaign, agent)) = campaign.zip(record.agent_id.as_ref()) else {
            return Ok(Ok(Vec::new()));
        };
        let mut filter = ChatUserFilter::default();
        let mut query = None;
        match &campaign.segment {
            SegmentSelector::All => {}
            SegmentSelector::ActiveSince { active_since_days } => {
                let ms = u64::from(*active_since_days) * DAY_MS;
                let since = run.started_at.0.saturating_sub_unsigned(ms);
                filter.active_since = Some(Timestamp(since));
            }
            SegmentSelector::Tag { tag } => filter.tag = Some(tag.clone()),
            SegmentSelector::CustomQuery { query: text } => match UserQuery::parse(text) {
                Ok(parsed) => query = Some(parsed),
                Err(why) => return Ok(Err(format!("invalid_query: {why}"))),
            },
        }
        let partition = Partition::from(&record.owner);
        let (mut users, mut seen, mut after) = (Vec::new(), BTreeSet::new(), None);
        loop {
            let page = ListingPage {
                after,
                limit: USERS_PAGE,
            };
            let listing = self
                .store()
                .list_chat_users(&partition.tenant, agent, &filter, &page)
                .await?;
            for row in &listing.rows {
                let Some(user) = addressed(row, &partition, query.as_ref()) else {
                    continue;
                };
                if seen.insert(user.clone()) {
                    users.push(user);
                }
                if users.len() > MAX_RECIPIENTS {
                    return Ok(Err("too_many_recipients".to_owned()));
                }
            }
            match listing.next {
                None => return Ok(Ok(users)),
                next => after = next,
            }
        }
    }

    pub(super) async fn record_schedule_work(
        &self,
        driver: &Arc<MachineDriver<Schedule>>,
        work: &LeasedEffect<ScheduleWork>,
        outcome: &ScheduleOutcome,
    ) -> Result<(), Fault> {
        match (outcome, &work.effect.kind) {
            (ScheduleOutcome::Segment(users), ScheduleWork::ResolveSegment { run_id }) => {
                let command = ScheduleCommand::ListRecipients {
                    run_id: run_id.clone(),
                    users: users.clone(),
                };
                self.submit_effect_result(work, driver, &work.stream, command)
                    .await
            }
            (_, ScheduleWork::StartTurn { run_id, ordinal }) => {
                self.start_scheduled_turn(driver, work, run_id, *ordinal)
                    .await
            }
            (_, ScheduleWork::StartRun { run_id }) => {
                self.start_scheduled_run(driver, work, run_id).await
            }
            (ScheduleOutcome::Start, ScheduleWork::ResolveSegment { .. }) => {
                self.remove_outbox_entry(work).await
            }
        }
    }

    /// Begins the turn of one user, or records why there is none. The commit removes the entry.
    async fn start_scheduled_turn(
        &self,
        driver: &Arc<MachineDriver<Schedule>>,
        work: &LeasedEffect<ScheduleWork>,
        run_id: &ScheduleRunId,
        ordinal: u32,
    ) -> Result<(), Fault> {
        for _ in 0..MAX_ATTEMPTS {
            let schedule = self.read_machine(driver, &work.stream).await?;
            let Some(schedule) = schedule.filter(|schedule| schedule.run(run_id).is_some()) else {
                return self.remove_outbox_entry(work).await;
            };
            let (record, run) = schedule
                .record()
                .zip(schedule.run(run_id))
                .expect("it has the run");
            let starts = record
                .agent_id
                .as_ref()
                .zip(run.definition.flow_id.as_ref());
            let user = self.recipient(run, run_id, ordinal).await?;
            let Some((starts, user)) = starts.zip(user) else {
                return self.remove_outbox_entry(work).await;
            };
            let Some(conversations) = self.conversations() else {
                let why = (ScheduledOutcome::Failed, AGENT_UNAVAILABLE.to_owned());
                let command = start_command(run_id, ordinal, &user, None, Err(why));
                return self
                    .submit_effect_result(work, driver, &work.stream, command)
                    .await;
            };
            let session = self
                .session_of_recipient(conversations, record, run, (starts, &user))
                .await?;
            let (process, now) = (&self.inner.config.owner, self.clock().now());
            let is_alone = self.inner.config.is_single_process;
            let attempt = schedule.attempt_of(run_id, process, now, is_alone);
            let parts = StartOfTurn {
                conversations,
                schedules: driver,
                work,
                record,
                agent: starts.0,
                turn: scheduled_turn((record, run), starts.1, (run_id, ordinal), &user, attempt),
                user: &user,
                session,
                now,
            };
            self.inner
                .effects
                .start_recording(&work.effect.id, &work.lease);
            match Box::pin(self.transact(&record.owner.tenant, &parts)).await {
                Ok(true) => return Ok(()),
                // The session ended meanwhile.
                Ok(false) => {}
                Err(SubmitError::Fault(fault)) if fault.code == AGENT_UNAVAILABLE => {
                    let why = (ScheduledOutcome::Failed, AGENT_UNAVAILABLE.to_owned());
                    let command = parts.unmade(&why);
                    return self
                        .submit_effect_result(work, driver, &work.stream, command)
                        .await;
                }
                // The id of the turn was claimed by a commit that this process does not know of.
                Err(SubmitError::IdempotencyKeyUsed) => {
                    return self.remove_outbox_entry(work).await;
                }
                Err(error) => return self.unrecorded(work, error).await,
            }
        }
        let message = format!(
            "the session of a recipient of {} changes too often",
            work.stream
        );
        Err(Fault::retryable("contended", message))
    }

    /// Who is addressed by the turn with this ordinal.
    async fn recipient(
        &self,
        run: &ActiveRun,
        run_id: &ScheduleRunId,
        ordinal: u32,
    ) -> Result<Option<String>, Fault> {
        if let Some(user) = run.definition.target.user() {
            return Ok(Some(user.user_external_id.clone()));
        }
        let page = ListingPage {
            after: ordinal.checked_sub(1),
            limit: 1,
        };
        let rows = self.store().list_schedule_recipients(run_id, &page).await?;
        let row = rows.rows.into_iter().find(|row| row.ordinal == ordinal);
        let Some(row) = row else { return Ok(None) };
        let recipient: RecipientRecord = serde_json::from_str(&row.body).map_err(|error| {
            let message = format!("recipient {ordinal} of {run_id} cannot be read: {error}");
            Fault::permanent("corrupt", message)
        })?;
        Ok(Some(recipient.user_external_id))
    }

    /// The session in which a user's turn takes place, begun if it may be.
    async fn session_of_recipient(
        &self,
        conversations: &Conversations,
        record: &ScheduleRecord,
        run: &ActiveRun,
        ((agent_id, flow_id), user): ((&AgentId, &FlowId), &str),
    ) -> Result<Result<SessionId, Unmade>, Fault> {
        let unmade = |outcome, reason: &str| Ok(Err((outcome, reason.to_owned())));
        if record.status == ScheduleStatus::Canceled {
            return unmade(ScheduledOutcome::Skipped, "schedule_canceled");
        }
        let agent = conversations.agents().agent(agent_id);
        let Some(agent) = agent else {
            return unmade(ScheduledOutcome::Failed, AGENT_UNAVAILABLE);
        };
        if agent.single_user.as_ref().is_some_and(|only| only != user) {
            return unmade(ScheduledOutcome::Skipped, "not_served");
        }
        let partition = Partition::from(&record.owner);
        let id = user_id(&partition, agent_id, user);
        let stream = StreamId::of_chat_user(&id);
        let known = self.read_machine(&conversations.users, &stream).await?;
        let profile = known.as_ref().and_then(AgentUser::profile);
        let consent = profile.and_then(|profile| profile.consent);
        if consent.is_some_and(|consent| !consent.proactive) {
            return unmade(ScheduledOutcome::Skipped, "opted_out");
        }
        let active = known.as_ref().and_then(AgentUser::active_session);
        let wanted = run.definition.target.user();
        let wanted = wanted.and_then(|target| target.session_id.as_ref());
        // A session that has ended, or is somebody else's, counts as none.
        let is_other = wanted.is_some_and(|wanted| Some(wanted) != active);
        if is_other && !run.definition.allow_session_bootstrap {
            return unmade(ScheduledOutcome::Skipped, "bootstrap_disabled");
        }
        let call = FlowCall {
            agent_id: agent_id.clone(),
            flow_id: flow_id.clone(),
            target: FlowTarget::UserExternalId(user.to_owned()),
            input: None,
            allow_session_bootstrap: run.definition.allow_session_bootstrap,
            on_active_flow: OnActiveFlow::default(),
        };
        let found = self
            .session_for_flow(conversations, &record.owner, &call)
            .await?;
        Ok(found.map_err(|why: Unstarted| match why.code {
            "bootstrap_disabled" => (ScheduledOutcome::Skipped, why.code.to_owned()),
            code => (ScheduledOutcome::Failed, code.to_owned()),
        }))
    }
}

/// The user of a row, if the schedule reaches them.
fn addressed(
    row: &ChatUserRow,
    partition: &Partition,
    query: Option<&UserQuery>,
) -> Option<String> {
    let listed: ListedChatUser = serde_json::from_str(&row.body).ok()?;
    if listed.workspace != partition.workspace {
        return None;
    }
    let facts = UserFacts {
        profile: &listed.profile,
        created_at: row.created_at,
        last_active_at: row.last_active_at,
    };
    let is_wanted = query.is_none_or(|query| query.matches(&facts));
    is_wanted.then(|| row.external_user_id.clone())
}

fn scheduled_turn(
    (record, run): (&ScheduleRecord, &ActiveRun),
    flow_id: &FlowId,
    (run_id, ordinal): (&ScheduleRunId, u32),
    user: &str,
    attempt: u32,
) -> ScheduledTurn {
    let definition = &run.definition;
    let (schedule, at) = (&record.id, run.scheduled_for.rfc3339());
    let campaign = definition.target.campaign();
    ScheduledTurn {
        schedule_id: schedule.clone(),
        run_id: run_id.clone(),
        ordinal,
        dedup_id: MessageId::from(format!("schedule:{schedule}:{at}:{user}")),
        flow_id: flow_id.clone(),
        trigger_type: definition.trigger.name().to_owned(),
        scheduled_for: run.scheduled_for,
        attempt,
        on_active_flow: definition.on_active_flow,
        campaign_id: campaign.and_then(|campaign| campaign.campaign_id.clone()),
        segment_id: campaign.map(|campaign| campaign.segment.segment_id()),
        metadata: definition.metadata.clone(),
        input: definition.input.clone(),
    }
}

/// What became of the attempt to begin the turn of one user.
fn start_command(
    run_id: &ScheduleRunId,
    ordinal: u32,
    user: &str,
    session: Option<&SessionId>,
    turn: Result<u64, Unmade>,
) -> ScheduleCommand {
    ScheduleCommand::NoteStart(Box::new(ScheduledStart {
        run_id: run_id.clone(),
        ordinal,
        user_external_id: user.to_owned(),
        session_id: session.cloned(),
        turn,
    }))
}

/// A user's turn begins in their session, and the schedule knows it.
struct StartOfTurn<'a> {
    conversations: &'a Conversations,
    schedules: &'a Arc<MachineDriver<Schedule>>,
    work: &'a LeasedEffect<ScheduleWork>,
    record: &'a ScheduleRecord,
    agent: &'a AgentId,
    turn: ScheduledTurn,
    user: &'a str,
    session: Result<SessionId, Unmade>,
    now: Timestamp,
}

impl StartOfTurn<'_> {
    fn started(&self, session: Option<&SessionId>, turn: Result<u64, Unmade>) -> ScheduleCommand {
        let turn_of = &self.turn;
        start_command(&turn_of.run_id, turn_of.ordinal, self.user, session, turn)
    }

    fn unmade(&self, why: &Unmade) -> ScheduleCommand {
        self.started(None, Err(why.clone()))
    }

    /// The id of the turn, claimed like that of a message.
    fn claim(&self, session: &SessionId, turn: u64) -> IdempotencyRecord {
        let partition = Partition::from(&self.record.owner);
        let agent = self.agent;
        let id = &self.turn.dedup_id;
        let claim = MessageClaim {
            session_id: session.clone(),
            turn,
            of_other_session: false,
        };
        IdempotencyRecord {
            key: IdempotencyKey::of_message(&partition, agent, SCHEDULE_TRANSPORT, id),
            digest: String::new(),
            response: StoredResponse {
                status: 200,
                body: serde_json::to_string(&claim).expect("a claim is plain data"),
            },
            recorded_at: self.now,
            session: Some(session.clone()),
        }
    }
}

impl TransactionParts for StartOfTurn<'_> {
    /// Whether it was committed: false when the session has ended.
    type Reply = bool;

    async fn submit_to(&self, transaction: &mut Transaction<'_>) -> Result<bool, SubmitError> {
        let command = match &self.session {
            Err(why) => self.unmade(why),
            Ok(session) => {
                let stream = StreamId::of_session(session);
                let begin = SessionCommand::BeginScheduled {
                    turn: Box::new(self.turn.clone()),
                };
                let sessions = &self.conversations.sessions;
                let answer = transaction.submit(sessions, &stream, &begin).await?;
                match answer.result {
                    Ok(SessionReply::Accepted { turn }) => {
                        transaction.store_response(self.claim(session, turn));
                        self.started(Some(session), Ok(turn))
                    }
                    Err(SessionRefusal::Ended | SessionRefusal::Unknown) => return Ok(false),
                    Err(refusal) => {
                        let message = refusal.to_string();
                        return Err(Fault::retryable(super::receive::OVERLOADED, message).into());
                    }
                    Ok(_) => {
                        let message = "a session accepted no turn";
                        return Err(Fault::permanent("internal", message).into());
                    }
                }
            }
        };
        transaction.complete(self.work);
        transaction
            .submit(self.schedules, &self.work.stream, &command)
            .await?
            .ok();
        Ok(true)
    }
}
