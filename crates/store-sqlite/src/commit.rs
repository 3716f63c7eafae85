//! One commit inside the writer's transaction. Everything is validated before anything is written,
//! so a refused commit changes nothing and needs no savepoint.

use crate::compression::CompressedTexts;
use crate::events::{self, StreamHead};
use crate::queue::Source;
use crate::statement_cache::StatementCache;
use crate::writer::{JobError, WriteTransaction};
use crate::{
    SqliteStore, agent_log, chat_users, definitions, escalations, idempotency, interrupts, keys,
    memory, outbox, people, processes, proxies, runs, schedules, sessions, timers, webhook_feed,
    webhooks,
};
use async_trait::async_trait;
use rusqlite::Connection;
use std::sync::atomic::Ordering;
use tandem_record::Seq;
use tandem_store::{
    CachedData, Commit, CommitGuard, Committed, Conflict, ConversationChange, Error, Log,
};

#[async_trait]
impl Log for SqliteStore {
    async fn commit(&self, commit: Commit) -> Result<Committed, Error> {
        commit.check()?;
        let people = !commit.people.is_empty();
        let compressed = CompressedTexts::of(&commit.appends);
        let from = Source {
            tenant: commit.tenant.clone(),
            bytes: commit.size().saturating_sub(compressed.saved_bytes()),
        };
        let (position, committed) = self
            .writer
            .write(from, move |tx| {
                let heads = validate(tx, &commit)?;
                let written = write(&mut tx.statements, &commit, &compressed, &heads)?;
                tx.chain.append(&mut tx.statements, &commit.audit)?;
                Ok(written)
            })
            .await?;
        if people {
            self.has_people.store(true, Ordering::Release);
        }
        if let Some(position) = position {
            self.memory_position.fetch_max(position, Ordering::AcqRel);
        }
        Ok(committed)
    }
}

/// The position of each append, or why the commit is refused.
fn validate(tx: &mut WriteTransaction<'_>, commit: &Commit) -> Result<Vec<StreamHead>, JobError> {
    for guard in &commit.guards {
        check_guard(tx.connection, guard)?;
    }
    for record in &commit.idempotency {
        if idempotency::is_used(tx.connection, &record.key)? {
            return Err(Conflict::KeyUsed.into());
        }
    }
    if let Some(key) = &commit.key {
        keys::check(tx.connection, key)?;
    }
    let mut heads: Vec<StreamHead> = Vec::with_capacity(commit.appends.len());
    for append in &commit.appends {
        // A later append of the same commit builds on the earlier one.
        let earlier = commit.appends[..heads.len()]
            .iter()
            .rposition(|earlier| earlier.stream == append.stream);
        let found = match earlier {
            Some(index) => Some(heads[index].after(&commit.appends[index])),
            None => events::find_cached(&mut tx.statements, &append.stream)?,
        };
        let actual = found.and_then(|place| place.head);
        if actual != append.after {
            return Err(Conflict::Position {
                stream: append.stream.clone(),
                expected: append.after,
                actual,
            }
            .into());
        }
        let place = found.unwrap_or_else(|| StreamHead {
            stream_no: tx.number_stream(),
            head: None::<Seq>,
        });
        events::check(place, append)?;
        heads.push(place);
    }
    Ok(heads)
}

fn check_guard(connection: &Connection, guard: &CommitGuard) -> Result<(), JobError> {
    match guard {
        CommitGuard::HoldsLease { effect, lease } => {
            if !outbox::holds_lease(connection, effect, lease)? {
                return Err(Conflict::LeaseLost(effect.clone()).into());
            }
        }
        CommitGuard::ScopeFree { owner, scope } => {
            if let Some(run) = runs::live_in_scope(connection, owner, scope)? {
                return Err(Conflict::Guard(format!("scope {scope} is taken by run {run}")).into());
            }
        }
        CommitGuard::NoDeliveryBefore { webhook, due } => {
            let next = webhooks::next(connection, webhook)?;
            if next.is_some_and(|next| due.is_none_or(|due| next < due)) {
                let message = format!("webhook {webhook} has a delivery to make");
                return Err(Conflict::Guard(message).into());
            }
        }
        CommitGuard::FeedEndsAt { tenant, position } => {
            if webhook_feed::head(connection, tenant)? != *position {
                let message = format!("events of tenant {tenant} wait in its feed");
                return Err(Conflict::Guard(message).into());
            }
        }
        CommitGuard::WebhookUnchanged { webhook, body } => {
            if !webhooks::has_body(connection, webhook, body)? {
                let message = format!("webhook {webhook} was changed by another request");
                return Err(Conflict::Guard(message).into());
            }
        }
        CommitGuard::RegisteredAs {
            owner,
            workflow,
            hash,
        } => {
            if definitions::registered_hash(connection, owner.as_ref(), workflow)? != *hash {
                let message = format!("workflow {workflow} means something else");
                return Err(Conflict::Guard(message).into());
            }
        }
        CommitGuard::MemoryKeysPresent {
            tenant,
            scope,
            memory_ref,
            keys,
        } => {
            if !memory::are_present(connection, tenant, scope, memory_ref, keys)? {
                return Err(Conflict::MemoryKeysMissing.into());
            }
        }
    }
    Ok(())
}

/// Returns the last used position of the memory journal, if any, and what it found.
fn write(
    statements: &mut StatementCache<'_>,
    commit: &Commit,
    compressed: &CompressedTexts,
    heads: &[StreamHead],
) -> rusqlite::Result<(Option<u64>, Committed)> {
    for (index, (append, place)) in commit.appends.iter().zip(heads).enumerate() {
        events::append(statements, *place, append, index, compressed)?;
        if let Some(row) = &append.run {
            runs::project(statements, row)?;
        }
    }
    let connection = statements.connection();
    for change in &commit.timers {
        timers::change(connection, change)?;
    }
    let mut committed = Committed::default();
    for change in &commit.outbox {
        outbox::change(connection, change, &mut committed)?;
    }
    for record in &commit.idempotency {
        idempotency::record(connection, record)?;
    }
    for row in &commit.interrupts {
        interrupts::project(connection, row)?;
    }
    for data in CachedData::ALL {
        if data.is_changed_by(commit) {
            processes::raise_epoch(connection, data)?;
        }
    }
    for change in &commit.registry {
        definitions::change(connection, change)?;
    }
    for stored in &commit.documents {
        definitions::store(connection, &stored.hash, &stored.document)?;
    }
    for change in &commit.people {
        people::change(connection, change)?;
    }
    if let Some(key) = &commit.key {
        keys::put(connection, key)?;
    }
    for change in &commit.webhooks {
        webhooks::change(connection, change)?;
    }
    for join in &commit.joins {
        memory::join(connection, join)?;
    }
    for change in &commit.conversations {
        change_conversation(connection, commit, change)?;
    }
    let mut position = None;
    for row in &commit.memory {
        position = Some(memory::append(connection, row)?);
    }
    Ok((position, committed))
}

fn change_conversation(
    connection: &Connection,
    commit: &Commit,
    change: &ConversationChange,
) -> rusqlite::Result<()> {
    match change {
        ConversationChange::PutUser(row) => chat_users::put(connection, row),
        ConversationChange::TouchUser { user, at } => chat_users::touch(connection, user, *at),
        ConversationChange::PutSession(row) => sessions::put(connection, row),
        ConversationChange::PutEscalation(row) => escalations::put(connection, row),
        ConversationChange::PutProxy(row) => proxies::put(connection, row),
        ConversationChange::AddProxyMessage { proxy, message } => {
            proxies::add_message(connection, proxy, message)
        }
        ConversationChange::PutSchedule(row) => schedules::put(connection, row),
        ConversationChange::PutScheduleRun(row) => schedules::put_run(connection, row),
        ConversationChange::PutScheduleRecipient(row) => schedules::put_recipient(connection, row),
        ConversationChange::LogEvents {
            tenant,
            agent,
            stream,
        } => commit
            .appended(stream)
            .try_for_each(|append| agent_log::add(connection, tenant, agent, append)),
    }
}
