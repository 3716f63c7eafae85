//! The user of an agent as a machine of this runtime.

use crate::codec;
use crate::driven_machine::{DrivenMachine, ProjectedRows, Projection};
use crate::fold_stream::FoldedStream;
use crate::leases::LeasedEffect;
use crate::machine_driver::MachineDriver;
use crate::runtime::Runtime;
use crate::submit::SubmitError;
use crate::worker_slots::internal_lane;
use std::sync::Arc;
use tandem_engine::chat_user::{AgentUser, KnownUser};
use tandem_engine::machine::{Decision, Machine};
use tandem_record::conversation::{ChatUserCommand, ListedChatUser};
use tandem_record::{ChatUserId, StreamId, TimerName};
use tandem_store::{ChatUserRow, Commit, ConversationChange, Fault, Lane, NewEvent};

fn user_of(stream: &StreamId) -> ChatUserId {
    ChatUserId::new(stream.as_str().trim_start_matches("user:"))
}

impl DrivenMachine for AgentUser {
    const STREAM_PREFIX: &'static str = "user:";
    const SNAPSHOT_FORMAT: u32 = 1;

    type Settings = ();
    type Outcome = ();

    fn limits<'a>(_: &'a Runtime, (): &'a ()) -> &'a () {
        &()
    }

    async fn load(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        stream: &StreamId,
    ) -> Result<Option<FoldedStream<Self>>, Fault> {
        let restore = |known: KnownUser| Some(Self::restored(user_of(stream), known));
        let fresh = Self::new(user_of(stream));
        let folded = runtime.fold_stream(stream, fresh, restore, None).await?;
        Ok(folded.machine.head().is_some().then_some(folded))
    }

    fn unstarted(stream: &StreamId) -> Option<Self> {
        Some(Self::new(user_of(stream)))
    }

    async fn decide_with_lookups(
        runtime: &Runtime,
        _: &MachineDriver<Self>,
        current: &Self,
        command: &ChatUserCommand,
    ) -> Result<Decision<Self>, SubmitError> {
        let Ok(decision) = current.decide(command, &runtime.clock().now());
        Ok(decision)
    }

    /// A user has no timers.
    fn timer_name((): &()) -> TimerName {
        TimerName::new("")
    }

    fn timer_key(_: &TimerName) -> Option<()> {
        None
    }

    fn timer_command((): ()) -> ChatUserCommand {
        ChatUserCommand::ChangeProfile(Box::default())
    }

    /// A user requests no work.
    fn effect_name((): &()) -> &'static str {
        "user"
    }

    fn lane(&self, (): &()) -> Lane {
        internal_lane(self.tenant())
    }

    async fn perform(
        _: &Runtime,
        _: &MachineDriver<Self>,
        _: &LeasedEffect<()>,
    ) -> Result<(), Fault> {
        Ok(())
    }

    async fn record_outcome(
        runtime: &Runtime,
        _: &Arc<MachineDriver<Self>>,
        work: &LeasedEffect<()>,
        (): &(),
    ) -> Result<(), Fault> {
        runtime.remove_outbox_entry(work).await
    }

    /// Profiles are cleaned before they are submitted.
    fn encode_events(
        _: &Runtime,
        _: Option<&Self>,
        decision: &mut Decision<Self>,
    ) -> Vec<NewEvent> {
        decision.events.iter().map(codec::encode_event).collect()
    }

    fn project(
        _: &Projection<'_>,
        before: Option<&Self>,
        decision: &Decision<Self>,
        commit: &mut Commit,
    ) -> ProjectedRows {
        let known = before.and_then(Self::profile);
        if let Some(contact) = decision.after.contact()
            && known != Some(&contact.user)
        {
            let user = &contact.user;
            let listed = ListedChatUser {
                profile: user.clone(),
                workspace: contact.owner.workspace.clone(),
            };
            let row = ChatUserRow {
                user_id: user.id.clone(),
                tenant: contact.owner.tenant.clone(),
                agent: contact.agent_id.clone(),
                external_user_id: user.external_user_id.clone(),
                created_at: decision.after.created_at(),
                last_active_at: decision.after.created_at(),
                tags: user.tags.clone(),
                body: serde_json::to_string(&listed).expect("a profile is plain data"),
            };
            commit.conversations.push(ConversationChange::PutUser(row));
        }
        ProjectedRows::default()
    }
}
