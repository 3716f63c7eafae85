//! One commit inside the writer's transaction: everything is looked at before anything is written,
//! so a refusal leaves no trace without a savepoint.

use crate::compression::CompressedTexts;
use crate::events::{self, Place};
use crate::often::Often;
use crate::queue::Source;
use crate::writer::{Ledger, Stop};
use crate::{
    SqliteStore, definitions, idempotency, interrupts, memory, outbox, people, runs, timers,
    webhooks,
};
use async_trait::async_trait;
use rusqlite::Connection;
use std::sync::atomic::Ordering;
use tandem_record::Seq;
use tandem_store::{Commit, Conflict, Error, Guard, Log};

#[async_trait]
impl Log for SqliteStore {
    async fn commit(&self, commit: Commit) -> Result<(), Error> {
        commit.check()?;
        let people = !commit.people.is_empty();
        let compressed = CompressedTexts::of(&commit.appends);
        let from = Source {
            tenant: commit.tenant.clone(),
            bytes: commit.size().saturating_sub(compressed.saved_bytes()),
        };
        let written = self
            .writer
            .write(from, move |ledger| {
                let places = validate(ledger, &commit)?;
                let written = write(&mut ledger.often, &commit, &compressed, &places)?;
                ledger.chain.append(&mut ledger.often, &commit.audit)?;
                Ok(written)
            })
            .await?;
        if people {
            self.has_people.store(true, Ordering::Release);
        }
        if let Some(position) = written {
            self.memory_position.fetch_max(position, Ordering::AcqRel);
        }
        Ok(())
    }
}

/// Where each append goes, or why the commit cannot be made.
fn validate(ledger: &mut Ledger<'_>, commit: &Commit) -> Result<Vec<Place>, Stop> {
    for guard in &commit.guards {
        check_guard(ledger.connection, guard)?;
    }
    if let Some(record) = &commit.idempotency
        && idempotency::is_used(ledger.connection, &record.key)?
    {
        return Err(Conflict::KeyUsed.into());
    }
    let mut places: Vec<Place> = Vec::with_capacity(commit.appends.len());
    for append in &commit.appends {
        // A later append of the same commit stands on the earlier one.
        let earlier = commit.appends[..places.len()]
            .iter()
            .rposition(|earlier| earlier.stream == append.stream);
        let found = match earlier {
            Some(index) => Some(places[index].after(&commit.appends[index])),
            None => events::find_again(&mut ledger.often, &append.stream)?,
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
        let place = found.unwrap_or_else(|| Place {
            stream_no: ledger.number_stream(),
            head: None::<Seq>,
        });
        events::check(place, append)?;
        places.push(place);
    }
    Ok(places)
}

fn check_guard(connection: &Connection, guard: &Guard) -> Result<(), Stop> {
    match guard {
        Guard::HoldsLease { effect, owner } => {
            if !outbox::is_leased_to(connection, effect, owner)? {
                return Err(
                    Conflict::Guard(format!("effect {effect} is not leased to {owner}")).into(),
                );
            }
        }
        Guard::ScopeFree { owner, scope } => {
            if let Some(run) = runs::live_in_scope(connection, owner, scope)? {
                return Err(Conflict::Guard(format!("scope {scope} is taken by run {run}")).into());
            }
        }
        Guard::NoDeliveryBefore { webhook, due } => {
            let next = webhooks::next(connection, webhook)?;
            if next.is_some_and(|next| due.is_none_or(|due| next < due)) {
                let message = format!("webhook {webhook} has a delivery to make");
                return Err(Conflict::Guard(message).into());
            }
        }
        Guard::Means {
            owner,
            workflow,
            hash,
        } => {
            if definitions::meaning(connection, owner.as_ref(), workflow)? != *hash {
                let message = format!("workflow {workflow} means something else");
                return Err(Conflict::Guard(message).into());
            }
        }
        Guard::Remembered {
            tenant,
            scope,
            memory_ref,
            keys,
        } => {
            if !memory::are_present(connection, tenant, scope, memory_ref, keys)? {
                return Err(Conflict::MemoryMoved.into());
            }
        }
    }
    Ok(())
}

/// The last place taken in the memory journal, if any was.
fn write(
    often: &mut Often<'_>,
    commit: &Commit,
    compressed: &CompressedTexts,
    places: &[Place],
) -> rusqlite::Result<Option<u64>> {
    for (index, (append, place)) in commit.appends.iter().zip(places).enumerate() {
        events::append(often, *place, append, index, compressed)?;
        if let Some(row) = &append.run {
            runs::project(often, row)?;
        }
    }
    let connection = often.connection();
    for change in &commit.timers {
        timers::change(connection, change)?;
    }
    for change in &commit.outbox {
        outbox::change(connection, change)?;
    }
    if let Some(record) = &commit.idempotency {
        idempotency::record(connection, record)?;
    }
    for row in &commit.interrupts {
        interrupts::project(connection, row)?;
    }
    for change in &commit.registry {
        definitions::change(connection, change)?;
    }
    for change in &commit.people {
        people::change(connection, change)?;
    }
    for change in &commit.webhooks {
        webhooks::change(connection, change)?;
    }
    for join in &commit.joins {
        memory::join(connection, join)?;
    }
    let mut position = None;
    for row in &commit.memory {
        position = Some(memory::append(connection, row)?);
    }
    Ok(position)
}
