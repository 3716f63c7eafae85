//! Parents and their children.

use super::{Ended, Runs, ensure};
use std::collections::BTreeMap;
use tandem_record::{ErrorInfo, Event, RunId, RunStatus};

/// Every child is named by its parent, once, and ends before it; a parent that completed has the
/// children it waited for.
pub(super) fn check_child_runs(runs: &Runs, clock_difference_ms: u64) -> Result<(), String> {
    let mut named: BTreeMap<&RunId, &RunId> = BTreeMap::new();
    for (parent, ended) in runs {
        for recorded in ended.own_events() {
            if let Event::NodeDispatched { child, .. } = &recorded.event {
                let twice = named.insert(child, parent);
                ensure(twice.is_none(), || format!("child {child} was named twice"))?;
            }
        }
        let reported = ended
            .log
            .iter()
            .filter_map(|recorded| match &recorded.event {
                Event::NodeCompleted { outputs, .. } => outputs.get("childRunId"),
                _ => None,
            });
        for child in reported.filter_map(|id| id.as_str()) {
            ensure(runs.contains_key(child), || {
                format!("{parent} completed with child {child}, which does not exist")
            })?;
        }
    }
    for (run, ended) in runs {
        let Some(parent) = &ended.row.parent else {
            continue;
        };
        ensure(named.get(run) == Some(&parent), || {
            format!("{run} is a child of {parent}, which never named it")
        })?;
        // A cancel waits for the descendants; a failure does not, and after a timeout a child may
        // continue.
        let above = &runs[parent];
        let end = above.row.ended_at.map(|at| at.plus_ms(clock_difference_ms));
        ensure(
            above.row.status != RunStatus::Cancelled
                || gave_up(above, run)
                || ended.row.ended_at <= end,
            || format!("{run} continued after {parent} was cancelled"),
        )?;
    }
    Ok(())
}

/// Whether the parent's node stopped waiting for this child before it ended.
fn gave_up(parent: &Ended, child: &RunId) -> bool {
    let events = || parent.log.iter().map(|recorded| &recorded.event);
    let node = events().find_map(|event| match event {
        Event::NodeDispatched { node, child: c, .. } if c == child => Some(node),
        _ => None,
    });
    let timed_out = |error: &ErrorInfo| error.code == "node_timeout";
    events().any(|event| match event {
        Event::NodeRetried {
            node: n,
            last_error,
            ..
        } => Some(n) == node && timed_out(last_error),
        Event::NodeFailed { node: n, error, .. } => Some(n) == node && timed_out(error),
        Event::NodeCompleted {
            node: n, outputs, ..
        } => Some(n) == node && outputs.contains_key("error"),
        _ => false,
    })
}
