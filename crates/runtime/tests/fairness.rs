//! One tenant's work does not delay another's.

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
use tandem_testkit::test_host::new_run;
use tandem_testkit::{SimClock, SimIds, WorkflowBuilder, wf};
use tokio::sync::Semaphore;
use tokio::test;

/// Calls to hosts that begin with `hangs` never end; others take as long as their name says.
#[derive(Default)]
struct HangingTargets {
    answered: Mutex<Vec<RunId>>,
}

#[async_trait]
impl Perform for HangingTargets {
    async fn perform(
        &self,
        run: &RunId,
        effect: &Effect,
        _: Option<&TraceContext>,
    ) -> EffectOutcome {
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
        self.answered.lock().push(run.clone());
        EffectOutcome::Done {
            outputs: Object::new(),
        }
    }
}

struct Host {
    runtime: Runtime,
    targets: Arc<HangingTargets>,
}

impl Host {
    async fn start(max_effects: usize) -> Self {
        let targets = Arc::new(HangingTargets::default());
        let store = Arc::new(MemoryStore::new());
        let mut config = RuntimeConfig::new(store, Arc::clone(&targets) as Arc<_>);
        config.clock = Arc::new(SimClock::starting_at(Timestamp(1_800_000_000_000)));
        config.ids = Arc::new(SimIds::new(1));
        config.max_effects = max_effects;
        let runtime = Runtime::start(config).await.expect("the store opens");
        let host = Self { runtime, targets };
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

    /// Registers it for every tenant.
    async fn register(&self, flow: WorkflowBuilder) {
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
async fn parent_and_child_runs_do_not_wait_behind_hanging_calls() {
    let host = Host::start(256).await;
    host.create_many("noisy", "call-hangs", 300).await;
    for tenant in ["quiet", "noisy"] {
        let run = host.create(tenant, "parent").await;
        let status = host.status_after(50, tenant, &run).await;
        assert_eq!(status, RunStatus::Completed, "{tenant}");
    }
}

#[test(start_paused = true)]
async fn hanging_calls_of_one_tenant_do_not_block_calls_of_another() {
    let host = Host::start(256).await;
    host.create_many("noisy", "call-hangs", 300).await;
    let run = host.create("quiet", "call-well").await;
    let status = host.status_after(50, "quiet", &run).await;
    assert_eq!(status, RunStatus::Completed);
    // Also to the same target.
    let before = host.create("quiet", "call-hangs").await;
    assert_eq!(
        host.status_after(50, "quiet", &before).await,
        RunStatus::Running
    );
}

#[test(start_paused = true)]
async fn hanging_target_leaves_workers_to_other_targets_of_its_tenant() {
    let host = Host::start(256).await;
    host.create_many("noisy", "call-hangs", 300).await;
    let run = host.create("noisy", "call-well").await;
    let status = host.status_after(50, "noisy", &run).await;
    assert_eq!(status, RunStatus::Completed);
}

#[test(start_paused = true)]
async fn waiting_tenants_are_served_round_robin() {
    let host = Host::start(4).await;
    host.create_many("noisy", "call-slow", 100).await;
    let mut quiet = Vec::new();
    for _ in 0..5 {
        quiet.push(host.create("quiet", "call-slow").await);
    }
    // At 100 ms per call the other tenant alone needs five seconds.
    let last = host.status_after(1_500, "quiet", &quiet[4]).await;
    assert_eq!(last, RunStatus::Completed);
    let answered = host.targets.answered.lock().len();
    assert!(answered < 50, "the noisy tenant still waits: {answered}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(host.targets.answered.lock().len(), 105, "no call is lost");
}

#[test(start_paused = true)]
async fn many_hanging_tenants_leave_a_worker_to_a_new_tenant() {
    let host = Host::start(64).await;
    for tenant in 0..4 {
        let name = format!("noisy-{tenant}");
        host.create_many(&name, "call-hangs", 64).await;
    }
    let run = host.create("newcomer", "call-well").await;
    let status = host.status_after(500, "newcomer", &run).await;
    assert_eq!(status, RunStatus::Completed);
}

/// Compares a long list with itself for each of its edges.
fn heavy(id: &str, entries: usize, edges: usize) -> WorkflowBuilder {
    let equal = vec!["output.o == output.o"; 20].join(" && ");
    let condition = json!({"type": "expression", "expression": format!("!({equal})")});
    let flow = wf(id)
        .variable("v", Value::from(vec![1; entries]))
        .node("s", "core.identity", json!({}))
        .port("o", json!({"type": "variable", "variableName": "v"}));
    (0..edges).fold(flow, |flow, n| {
        let target = format!("t{n}");
        flow.noop(&target)
            .edge_with("s", &target, json!({"condition": condition}))
    })
}

#[test(flavor = "multi_thread", worker_threads = 2)]
async fn heavy_decisions_of_one_tenant_do_not_hold_up_decisions_of_another() {
    let host = Arc::new(Host::start(256).await);
    host.register(heavy("very-heavy", 50_000, 20)).await;
    host.register(heavy("heavy", 10_000, 1)).await;
    let started = Arc::new(Semaphore::new(0));
    let noisy: Vec<_> = (0..6)
        .map(|_| {
            let (host, started) = (Arc::clone(&host), Arc::clone(&started));
            tokio::spawn(async move {
                started.add_permits(1);
                host.create("noisy", "very-heavy").await
            })
        })
        .collect();
    // A worker starts the next task when the one before waits for its turn, so most of them wait then.
    let _all = started.acquire_many(6).await;
    // One decision is small, the other has to be made where the noisy ones are.
    for workflow in ["child", "heavy"] {
        let run = host.create("quiet", workflow).await;
        let status = host.status_after(0, "quiet", &run).await;
        assert_eq!(status, RunStatus::Completed, "{workflow}");
        let waiting = noisy.iter().filter(|task| !task.is_finished()).count();
        assert!(waiting > 0, "{workflow} did not wait for all of them");
    }
    noisy.iter().for_each(tokio::task::JoinHandle::abort);
    host.runtime.shutdown(Duration::from_secs(5)).await;
}
