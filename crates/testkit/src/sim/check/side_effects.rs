//! Calls to the outside, timers and waiting effects.

use super::ensure;
use crate::sim::Simulation;
use std::collections::BTreeSet;
use tandem_record::Timestamp;
use tandem_runtime::Fault;

/// Every call has its identity in the outbox first, and is made once per incarnation. Among several
/// processes it is made again only if a process failed. Returns how many were.
pub(super) fn check_calls_recorded_first(sim: &Simulation) -> Result<u64, String> {
    let mut made = BTreeSet::new();
    let mut repeated = 0;
    for call in sim.performer.performed() {
        ensure(call.recorded, || {
            format!("{} made a call without a record", call.run)
        })?;
        let key = (call.incarnation, call.effect.clone(), call.attempt);
        let fresh = made.insert(key);
        ensure(fresh || sim.process_faults.any(), || {
            format!("{} made call {} twice", call.run, call.effect)
        })?;
        repeated += u64::from(!fresh);
    }
    Ok(repeated)
}

/// All runs have ended: no timer is set, no effect waits.
pub(super) async fn check_nothing_left_over(sim: &Simulation) -> Result<Result<(), String>, Fault> {
    let store = sim.store();
    let timers = store.due_timers(Timestamp(i64::MAX), usize::MAX).await?;
    let effects = store.depth().await?;
    Ok(ensure(timers.is_empty() && effects == 0, || {
        format!("{effects} effects and timers {timers:?} are left")
    }))
}
