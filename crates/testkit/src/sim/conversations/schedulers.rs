//! Admins who make, change and end schedules at run time.

use super::agents::{AGENTS, random_schedule};
use super::people::actor;
use super::{Conversations, check, tenants};
use rand::Rng;
use rand::rngs::SmallRng;
use std::sync::Arc;
use tandem_engine::agent::read_schedule;
use tandem_record::conversation::{
    ScheduleCommand, ScheduleDefinition, ScheduleOrigin, SchedulePlane, ScheduleStatus,
};
use tandem_record::{AgentId, Owner, ScheduleId, TenantId};
use tandem_runtime::Runtime;
use tandem_store::{ListingPage, ScheduleFilter, ScheduleRow};

/// Schedules of a tenant at most.
const MAX: usize = 3;

/// Makes a schedule, or changes, pauses or ends one.
pub(super) async fn manage_schedules(
    sim: &Arc<Conversations>,
    tenant: &TenantId,
    admin: &str,
    rng: &mut SmallRng,
) {
    let runtime = sim.any_runtime(rng);
    let Ok(rows) = schedules(&runtime, tenant).await else {
        return;
    };
    let max = if sim.crash_at.is_some() { 1 } else { MAX };
    if rows.len() < max {
        return create(sim, &runtime, tenant, admin, rng).await;
    }
    let row = &rows[rng.random_range(0..rows.len())];
    // Those of workflows change with their documents only.
    let Some(agent) = &row.agent else {
        return;
    };
    let (expected, actor) = (None, Some(actor(admin)));
    let command = match rng.random_range(0..6) {
        0 => ScheduleCommand::Pause { expected, actor },
        1 | 2 => ScheduleCommand::Resume { expected, actor },
        3 => ScheduleCommand::Cancel {
            expected,
            actor,
            reason: "enough".to_owned(),
        },
        _ => ScheduleCommand::Update {
            expected,
            definition: Box::new(definition(sim, &runtime, agent, rng)),
            actor,
        },
    };
    // Refused for one that was cancelled.
    drop(runtime.submit_to_schedule(&row.schedule_id, command).await);
}

async fn create(
    sim: &Arc<Conversations>,
    runtime: &Runtime,
    tenant: &TenantId,
    admin: &str,
    rng: &mut SmallRng,
) {
    let agent_id = AgentId::from(AGENTS[rng.random_range(0..AGENTS.len())]);
    let command = ScheduleCommand::Create {
        definition: Box::new(definition(sim, runtime, &agent_id, rng)),
        agent_id,
        owner: Owner {
            tenant: tenant.clone(),
            workspace: None,
            principal: None,
        },
        created_by: ScheduleOrigin {
            plane: SchedulePlane::Control,
            actor_id: Some(admin.to_owned()),
            user_id: None,
        },
        actor: Some(actor(admin)),
    };
    let id = runtime.new_schedule_id();
    // Asked again when nobody knows whether it was made, perhaps of another process.
    for _ in 0..rng.random_range(1..4) {
        let asked = sim.any_runtime(rng);
        drop(asked.submit_to_schedule(&id, command.clone()).await);
    }
}

fn definition(
    sim: &Conversations,
    runtime: &Runtime,
    agent: &AgentId,
    rng: &mut SmallRng,
) -> ScheduleDefinition {
    let now = runtime.clock().now();
    let written = random_schedule(now, rng);
    let read = read_schedule(&written, sim.outside.spec(agent), now);
    read.expect("the schedules of the simulation are valid")
}

pub(super) async fn schedules(
    runtime: &Runtime,
    tenant: &TenantId,
) -> Result<Vec<ScheduleRow>, String> {
    let page = ListingPage {
        after: None,
        limit: 1_000,
    };
    let filter = ScheduleFilter::default();
    let listed = runtime.store().list_schedules(tenant, &filter, &page).await;
    let listing = listed.map_err(check::store_failed)?;
    Ok(listing.map(|listing| listing.rows).unwrap_or_default())
}

/// Without faults: ends every schedule, so that everything comes to its end.
pub(super) async fn cancel_all(runtime: &Runtime) -> Result<(), String> {
    for tenant in tenants() {
        for row in schedules(runtime, &tenant).await? {
            if row.status != ScheduleStatus::Canceled {
                cancel(runtime, &row.schedule_id).await?;
            }
        }
    }
    Ok(())
}

async fn cancel(runtime: &Runtime, schedule: &ScheduleId) -> Result<(), String> {
    let command = ScheduleCommand::Cancel {
        expected: None,
        actor: None,
        reason: "the simulation ends".to_owned(),
    };
    let canceled = runtime.submit_to_schedule(schedule, command).await;
    match canceled {
        Ok(Ok(_)) => Ok(()),
        other => Err(format!("{schedule} cannot be cancelled: {other:?}")),
    }
}
