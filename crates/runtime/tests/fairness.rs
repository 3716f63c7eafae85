//! One tenant's work does not hold up another's.

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tandem_record::{
    Effect, EffectKind, EffectOutcome, Object, RunId, RunStatus, TenantId, Timestamp, TraceContext,
};
use tandem_runtime::{Perform, Permissions, Runtime, RuntimeConfig};
use tandem_store::memory::MemoryStore;
use tandem_testkit::house::new_run;
use tandem_testkit::{Flow, SimClock, SimIds, wf};
use tokio::test;

/// Calls to hosts that begin with `hangs` never end; others take as long as their name says.
#[derive(Default)]
struct World {
    answered: Mutex<Vec<RunId>>,
}

#[async_trait]
impl Perform for World {
    async fn perform(&self, effect: &Effect, _: Option<&TraceContext>) -> EffectOutcome {
        let EffectKind::Http { request, .. } = &effect.kind else {
            panic!("only HTTP is called here");
        };
        if request.url.contains("//hangs") {
            std::future::pending::<()>().await;
        }
        let ms = if request.url.contains("//slow") {
            100
        } else {
            1
        };
        tokio::time::sleep(Duration::from_millis(ms)).await;
        self.answered.lock().push(effect.run_id.clone());
        EffectOutcome::Done {
            outputs: Object::new(),
        }
    }
}

struct Host {
    runtime: Runtime,
    world: Arc<World>,
}

impl Host {
    async fn start(max_effects: usize) -> Self {
        let world = Arc::new(World::default());
        let store = Arc::new(MemoryStore::new());
        let mut config = RuntimeConfig::new(store, Arc::clone(&world) as Arc<_>);
        config.clock = Arc::new(SimClock::starting_at(Timestamp(1_800_000_000_000)));
        config.ids = Arc::new(SimIds::new(1));
        config.max_effects = max_effects;
        let runtime = Runtime::start(config).await.expect("the store opens");
        let host = Self { runtime, world };
        for (name, target) in [
            ("call-hangs", "hangs.test"),
            ("call-slow", "slow.test"),
            ("call-well", "well.test"),
        ] {
            let config = json!({"url": format!("http://{target}/")});
            let flow = wf(name).node("call", "vendor.tandem.http", config);
            host.register(flow).await;
        }
        host.register(wf("child").noop("work")).await;
        let parent = wf("parent").call("child", "child", json!({}));
        host.register(parent).await;
        host
    }

    /// For every tenant.
    async fn register(&self, flow: Flow) {
        let document: Value = flow.document();
        let registered = self
            .runtime
            .register(None, &document, Permissions::default())
            .await;
        registered.expect("the workflow is sound");
    }

    async fn create(&self, tenant: &str, workflow: &str) -> RunId {
        let mut new = new_run(workflow, json!({}));
        new.request.owner.tenant = TenantId::new(tenant);
        let created = self.runtime.create_run(new, None).await;
        created.expect("the run may start")
    }

    async fn create_many(&self, tenant: &str, workflow: &str, count: usize) {
        for _ in 0..count {
            self.create(tenant, workflow).await;
        }
    }

    async fn status_after(&self, ms: u64, tenant: &str, run: &RunId) -> RunStatus {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        let found = self.runtime.find_run(&TenantId::new(tenant), run).await;
        let found = found.expect("the store answers").expect("the run exists");
        found.row.status
    }
}

#[test(start_paused = true)]
async fn a_parent_and_its_child_do_not_wait_behind_calls_that_hang() {
    let host = Host::start(256).await;
    host.create_many("noisy", "call-hangs", 300).await;
    for tenant in ["quiet", "noisy"] {
        let run = host.create(tenant, "parent").await;
        let status = host.status_after(50, tenant, &run).await;
        assert_eq!(status, RunStatus::Completed, "{tenant}");
    }
}

#[test(start_paused = true)]
async fn calls_of_another_tenant_are_made_while_one_hangs_on_all_it_may_have() {
    let host = Host::start(256).await;
    host.create_many("noisy", "call-hangs", 300).await;
    let run = host.create("quiet", "call-well").await;
    let status = host.status_after(50, "quiet", &run).await;
    assert_eq!(status, RunStatus::Completed);
    // Even to the very same target.
    let before = host.create("quiet", "call-hangs").await;
    assert_eq!(
        host.status_after(50, "quiet", &before).await,
        RunStatus::Running
    );
}

#[test(start_paused = true)]
async fn a_target_that_hangs_leaves_workers_to_its_tenants_other_targets() {
    let host = Host::start(256).await;
    host.create_many("noisy", "call-hangs", 300).await;
    let run = host.create("noisy", "call-well").await;
    let status = host.status_after(50, "noisy", &run).await;
    assert_eq!(status, RunStatus::Completed);
}

#[test(start_paused = true)]
async fn tenants_that_wait_are_served_in_turn() {
    let host = Host::start(4).await;
    host.create_many("noisy", "call-slow", 100).await;
    let mut quiet = Vec::new();
    for _ in 0..5 {
        quiet.push(host.create("quiet", "call-slow").await);
    }
    // At 100 ms a call the other tenant alone needs five seconds.
    let last = host.status_after(1_500, "quiet", &quiet[4]).await;
    assert_eq!(last, RunStatus::Completed);
    let answered = host.world.answered.lock().len();
    assert!(answered < 50, "the noisy tenant still waits: {answered}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(
        host.world.answered.lock().len(),
        105,
        "nothing is forgotten"
    );
}

#[test(start_paused = true)]
async fn many_tenants_that_hang_leave_a_worker_to_a_newcomer() {
    let host = Host::start(64).await;
    for tenant in 0..4 {
        let name = format!("noisy-{tenant}");
        host.create_many(&name, "call-hangs", 64).await;
    }
    let run = host.create("newcomer", "call-well").await;
    let status = host.status_after(500, "newcomer", &run).await;
    assert_eq!(status, RunStatus::Completed);
}
