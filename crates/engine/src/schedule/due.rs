//! Which occurrences take place when a schedule is looked at, and which were missed.

use super::cron::Occurrences;
use tandem_record::Timestamp;
use tandem_record::conversation::OnMissed;

/// Missed occurrences that are reported one by one; the others are reported together.
const MAX_LISTED: usize = 100;
/// Missed occurrences that are counted; beyond them only the last one is known.
const MAX_COUNTED: u32 = 10_000;

/// What is to be done now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DueOccurrences {
    /// Missed, the oldest first.
    pub(super) missed: Vec<Timestamp>,
    /// Those missed after them: the first, the last, and how many there are at least.
    pub(super) more_missed: Option<(Timestamp, Timestamp, u32)>,
    /// To be executed, the oldest first.
    pub(super) run: Vec<Timestamp>,
    /// How many of these were missed.
    pub(super) caught_up: usize,
    pub(super) next: Option<Timestamp>,
}

/// `first` is the earliest occurrence that was not looked at yet, and is not in the future. One older than
/// `late_after_ms` was missed.
pub(super) fn due(
    occurrences: &Occurrences,
    first: Timestamp,
    now: Timestamp,
    late_after_ms: u64,
    on_missed: &OnMissed,
) -> DueOccurrences {
    let mut due = DueOccurrences {
        next: occurrences.after(now),
        ..DueOccurrences::default()
    };
    let on_time_from = Timestamp(now.0.saturating_sub_unsigned(late_after_ms));
    let before_on_time = Timestamp(on_time_from.0.saturating_sub(1));
    let oldest = Timestamp(now.0.saturating_sub_unsigned(on_missed.max_age_ms()));
    let max_runs = on_missed.max_runs() as usize;
    due.run = occurrences.last(before_on_time, oldest.max(first), max_runs);
    due.caught_up = due.run.len();
    let kept_from = due.run.first().copied().unwrap_or(on_time_from);
    let mut at = Some(first).filter(|first| *first < kept_from);
    let mut more: Option<(Timestamp, Timestamp, u32)> = None;
    while let Some(missed) = at {
        match &mut more {
            None if due.missed.len() < MAX_LISTED => due.missed.push(missed),
            None => more = Some((missed, missed, 1)),
            Some((_, last, count)) if *count < MAX_COUNTED => {
                *last = missed;
                *count += 1;
            }
            Some((_, last, _)) => {
                let before = Timestamp(kept_from.0.saturating_sub(1));
                *last = occurrences
                    .last(before, missed, 1)
                    .last()
                    .copied()
                    .unwrap_or(missed);
                break;
            }
        }
        at = occurrences.after(missed).filter(|next| *next < kept_from);
    }
    due.more_missed = more;
    // What comes too late by a little is executed, whatever the policy.
    let on_time = on_time_from.max(first);
    let mut at = match first >= on_time_from {
        true => Some(first),
        false => occurrences.after(Timestamp(on_time.0.saturating_sub(1))),
    };
    while let Some(run) = at.filter(|at| *at <= now) {
        due.run.push(run);
        at = occurrences.after(run);
    }
    due
}
