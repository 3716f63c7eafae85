//! Turns of one session.

use super::{SessionLog, ensure};
use crate::sim::conversations::{Conversations, TENANTS};
use std::collections::{BTreeMap, BTreeSet};
use tandem_record::conversation::{
    SessionEvent, SessionEventBody as Body, SessionTimer, TurnCause, TurnOutcome, TurnTrigger,
};
use tandem_record::{MessageId, Recorded};
use tandem_runtime::conversation::ChatSession;

pub(super) fn check(sim: &Conversations, log: &SessionLog) -> Result<(), String> {
    check_sequence(log)?;
    check_one_at_a_time(sim, log)?;
    check_messages_answered_once(log)?;
    check_queue(log)?;
    check_deadlines_before_messages(log)?;
    check_keys(log)?;
    check_reports(log)
}

/// Gapless from 0, times never go back, nothing of another tenant.
fn check_sequence(log: &SessionLog) -> Result<(), String> {
    let id = &log.id;
    for (place, event) in log.events.iter().enumerate() {
        ensure(event.seq.0 == place as u64, || {
            format!("{id} has a gap at {place}")
        })?;
        let text = serde_json::to_string(&event.event).map_err(|e| e.to_string())?;
        let others = TENANTS
            .iter()
            .filter(|tenant| **tenant != log.tenant.as_str());
        for other in others {
            ensure(!text.contains(other), || {
                format!("{id} of {} holds something of {other}: {text}", log.tenant)
            })?;
        }
    }
    ensure(log.events.windows(2).all(|w| w[0].at <= w[1].at), || {
        format!("times in the log of {id} go back")
    })
}

/// Z-16
fn check_one_at_a_time(sim: &Conversations, log: &SessionLog) -> Result<(), String> {
    let id = &log.id;
    let agent = sim.outside.spec(&log.agent);
    // The number of a burst is given out before that of turns that are queued while it is open.
    // Turns that waited for a handback come before those that were queued later.
    let is_takeover = |event: &&Recorded<SessionEvent>| {
        matches!(event.event.body, Body::LiveTakeoverStarted { .. })
    };
    let in_order = agent.inbound.debounce_ms == 0 && !log.events.iter().any(|e| is_takeover(&e));
    // Somebody who asks for the conversation does not wait for the turn under way, nor does what the user writes to
    // the person: there may be one turn beside another.
    let mut taken = false;
    let mut beside: BTreeSet<&MessageId> = BTreeSet::new();
    let (mut under_way, mut last): (Vec<u64>, u64) = (Vec::new(), 0);
    for event in &log.events {
        let turn = event.event.turn;
        match &event.event.body {
            Body::LiveTakeoverStarted { .. } => taken = true,
            Body::LiveTakeoverEnded(_) => taken = false,
            Body::MessageReceived { message, .. }
            | Body::TurnQueued {
                cause: TurnCause::AdminCommand { message, .. },
            } if message.body.trim().starts_with("/takeover") => {
                beside.insert(&message.message_id);
            }
            Body::TurnStarted { message_ids, .. } => {
                let is_command = message_ids.iter().any(|id| beside.contains(id));
                let most = usize::from(taken || is_command);
                ensure(under_way.len() <= most, || {
                    format!("{id} starts turn {turn:?} during {under_way:?}")
                })?;
                let number = turn.ok_or_else(|| format!("{id} starts a turn without a number"))?;
                ensure(!in_order || is_command || number > last, || {
                    format!("{id} starts turn {number} after {last}")
                })?;
                under_way.push(number);
                last = match is_command {
                    true => last,
                    false => number,
                };
            }
            Body::TurnEnded(_) => {
                let place = under_way.iter().position(|number| Some(*number) == turn);
                let place =
                    place.ok_or_else(|| format!("{id} ends turn {turn:?} during {under_way:?}"))?;
                under_way.remove(place);
            }
            _ => {}
        }
    }
    ensure(under_way.is_empty(), || {
        format!("{id} ended during turn {under_way:?}")
    })
}

/// Z-8, Z-10, Z-16: every accepted message is in one turn, in order of arrival, or is dropped with its session.
fn check_messages_answered_once(log: &SessionLog) -> Result<(), String> {
    let id = &log.id;
    let mut received: Vec<&MessageId> = Vec::new();
    // In the order in which their turns started, the first one where another turn took them over.
    let mut answered: Vec<&MessageId> = Vec::new();
    let mut dropped: BTreeSet<&MessageId> = BTreeSet::new();
    let mut interrupted: BTreeSet<&MessageId> = BTreeSet::new();
    let mut current: &[MessageId] = &[];
    for event in &log.events {
        match &event.event.body {
            Body::MessageReceived { message, .. } => received.push(&message.message_id),
            Body::TurnQueued {
                cause: TurnCause::AdminCommand { message, .. },
            } => received.push(&message.message_id),
            Body::TurnQueued {
                cause: TurnCause::Scheduled(turn),
            } => received.push(&turn.dedup_id),
            Body::TurnStarted {
                trigger,
                message_ids,
                ..
            } if *trigger != TurnTrigger::QueueReplay => {
                current = message_ids;
                let ids = message_ids.iter();
                answered.extend(ids.filter(|message| !interrupted.remove(message)));
            }
            Body::TurnStarted { .. } => current = &[],
            // The next turn answers them too.
            Body::TurnEnded(TurnOutcome::Interrupted) => interrupted.extend(current),
            Body::TurnDropped { message_ids, .. } => dropped.extend(message_ids),
            _ => {}
        }
    }
    ensure(interrupted.is_subset(&dropped), || {
        format!("{id} never answers {interrupted:?}")
    })?;
    let unique: BTreeSet<_> = received.iter().collect();
    ensure(unique.len() == received.len(), || {
        format!("{id} accepted a message twice: {received:?}")
    })?;
    let unique: BTreeSet<_> = answered.iter().collect();
    ensure(unique.len() == answered.len(), || {
        format!("{id} answers a message twice: {answered:?}")
    })?;
    // A queued message was answered before it is dropped as a replay.
    received.retain(|message| answered.contains(message) || !dropped.contains(message));
    let texts = |list: &[&MessageId]| format!("{list:?}");
    let (mut expected, mut found) = (received.clone(), answered.clone());
    expected.sort();
    found.sort();
    ensure(expected == found, || {
        format!(
            "{id} accepted {} and answered {}",
            texts(&received),
            texts(&answered)
        )
    })?;
    let is_burst = log
        .events
        .iter()
        .any(|e| matches!(e.event.body, Body::BurstClosed));
    // A command that takes the conversation over may overtake others.
    let overtakes = |e: &Recorded<SessionEvent>| match &e.event.body {
        Body::MessageReceived { message, .. }
        | Body::TurnQueued {
            cause: TurnCause::AdminCommand { message, .. },
        } => message.body.trim().starts_with("/takeover"),
        _ => false,
    };
    let is_overtaken = log.events.iter().any(overtakes);
    ensure(is_burst || is_overtaken || received == answered, || {
        format!(
            "{id} accepted {} and answered {}",
            texts(&received),
            texts(&answered)
        )
    })
}

/// Z-34: what was kept while a person was awaited is replayed or consumed once, in order.
fn check_queue(log: &SessionLog) -> Result<(), String> {
    let id = &log.id;
    let mut queued: Vec<&MessageId> = Vec::new();
    let mut replays: Vec<&MessageId> = Vec::new();
    for event in &log.events {
        match &event.event.body {
            Body::PendingMessage {
                message_id,
                behavior,
            } if behavior == "queue" => {
                ensure(!queued.contains(&message_id), || {
                    format!("{id} keeps {message_id} twice")
                })?;
                queued.push(message_id);
            }
            Body::QueueConsumed { message_ids } => {
                queued.retain(|message| !message_ids.contains(message));
            }
            Body::TurnQueued {
                cause: TurnCause::QueueReplay { message },
            } => {
                let message = &message.message.message_id;
                ensure(queued.first() == Some(&message), || {
                    format!("{id} replays {message} before {queued:?}")
                })?;
                queued.remove(0);
                replays.push(message);
            }
            Body::TurnStarted {
                trigger: TurnTrigger::QueueReplay,
                message_ids,
                ..
            } => {
                ensure(replays.first() == message_ids.first().as_ref(), || {
                    format!("{id} replays {message_ids:?} before {replays:?}")
                })?;
                replays.remove(0);
            }
            Body::TurnDropped { message_ids, .. } => {
                replays.retain(|message| !message_ids.contains(message));
            }
            _ => {}
        }
    }
    ensure(queued.is_empty() && replays.is_empty(), || {
        format!("{id} ended with {queued:?} and {replays:?} in its queue")
    })
}

/// Z-192: a deadline that has passed comes before a message that arrives now.
fn check_deadlines_before_messages(log: &SessionLog) -> Result<(), String> {
    let Body::SessionStarted(start) = &log.events[0].event.body else {
        return Err(format!("{} does not begin with its start", log.id));
    };
    let mut session = ChatSession::started((**start).clone(), log.events[0].at);
    for event in &log.events[1..] {
        if let Body::MessageReceived { .. } = &event.event.body {
            let timers = session.required_timers();
            let late = timers
                .iter()
                .find(|(timer, due)| **due <= event.at && **timer != SessionTimer::Idle);
            ensure(late.is_none(), || {
                format!(
                    "{} accepts a message at {} before {late:?}",
                    log.id, event.at.0
                )
            })?;
        }
        session.evolve(event);
    }
    Ok(())
}

/// The keys of the session are those of a model: the flows count without a gap, and what calls set is the last
/// outcome that was recorded.
fn check_keys(log: &SessionLog) -> Result<(), String> {
    let mut model = BTreeMap::new();
    for event in &log.events {
        let Body::KvChanged { key, value } = &event.event.body else {
            continue;
        };
        if key == crate::sim::conversations::flow_code::COUNTED {
            let before = model.get(key).and_then(serde_json::Value::as_u64);
            let expected = before.unwrap_or(0) + 1;
            ensure(
                value.as_ref().and_then(serde_json::Value::as_u64) == Some(expected),
                || format!("{} counts {value:?} instead of {expected}", log.id),
            )?;
        }
        match value {
            Some(value) => model.insert(key.clone(), value.clone()),
            None => model.remove(key),
        };
    }
    let reserved = log.folded.reserved_keys();
    let mut keys = log.folded.all_keys();
    keys.retain(|key, _| !reserved.contains_key(key));
    ensure(keys == model, || {
        format!("keys of {} are {keys:?}, not {model:?}", log.id)
    })
}

/// Z-262: responses are reported one at a time, in the order of their turns.
fn check_reports(log: &SessionLog) -> Result<(), String> {
    use tandem_record::conversation::WorkPurpose;
    let mut order: Vec<u64> = Vec::new();
    let (mut last, mut under_way) = (None, None);
    for event in &log.events {
        match &event.event.body {
            Body::TurnStarted { .. } => order.extend(event.event.turn),
            Body::WorkRequested(work) => {
                let WorkPurpose::Report { turn } = &work.purpose else {
                    continue;
                };
                let place = order.iter().position(|number| number == turn);
                ensure(under_way.is_none() && place > last, || {
                    format!(
                        "{} reports turn {turn} of {order:?} after {last:?}, during {under_way:?}",
                        log.id
                    )
                })?;
                last = place;
                under_way = Some(work.effect_id.clone());
            }
            Body::WorkFinished { effect_id } if under_way.as_ref() == Some(effect_id) => {
                under_way = None;
            }
            _ => {}
        }
    }
    ensure(under_way.is_none(), || {
        format!("{} never finished a report", log.id)
    })
}
