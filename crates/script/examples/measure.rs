//! Costs of flow instances: start, replay, memory. `cargo run -p tandem-script --example measure`

use serde_json::{Map, json};
use std::sync::Arc;
use std::time::Duration;
use tandem_script::{
    FlowInstance, FlowStart, FlowStep, ScriptLimits, SourceSet, Surroundings, load,
};

const FLOW: &str = "
    import type { FlowContext } from 'tandem';
    interface Order { id: string; count: number }
    export async function* long(ctx: FlowContext) {
      const answers: string[] = [];
      for (let i = 0; i < 100; i++) {
        const order: Order = { id: `o${i}`, count: i };
        answers.push(yield ctx.ask(`q${i}`, `Question ${order.id} (${order.count})?`));
      }
      yield { type: 'say', text: answers.join(', ') };
    }";

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let agent = folder.path().join("demo");
    std::fs::create_dir_all(agent.join("flows")).expect("writable");
    std::fs::write(agent.join("agent.ts"), "export default { prompt: 'p' };").expect("writable");
    std::fs::write(agent.join("flows/long.ts"), FLOW).expect("writable");
    let surroundings = Surroundings {
        now_ms: 1_767_268_800_000,
        seed: b"seed".to_vec(),
        time_zone: "UTC".to_owned(),
    };
    let limits = ScriptLimits::default();
    let loading = median(5, || drop(load(&agent, limits, &surroundings)));
    let module = load(&agent, limits, &surroundings);
    assert_eq!(module.errors, []);
    let set = module.sources.values().next().expect("a flow").clone();
    let starting = median(50, || drop(started(&set, &surroundings)));
    let replaying = median(50, || {
        let mut flow = started(&set, &surroundings);
        for _ in 0..100 {
            assert!(matches!(
                flow.next(Some(&json!("an answer"))),
                FlowStep::Effect(_)
            ));
        }
    });
    let idle = started(&set, &surroundings).heap_bytes();
    let before = resident_kb();
    let parked: Vec<FlowInstance> = (0..200).map(|_| started(&set, &surroundings)).collect();
    let each = (resident_kb() - before) / parked.len() as i64;
    eprintln!("load the agent           {loading:>10.2?}");
    eprintln!("start to the first effect{starting:>10.2?}");
    eprintln!("start and replay 100     {replaying:>10.2?}");
    eprintln!("heap of an idle instance {:>7} KiB", idle / 1024);
    eprintln!("resident, of 200 parked  {each:>7} KiB each");
}

fn started(set: &Arc<SourceSet>, surroundings: &Surroundings) -> FlowInstance {
    let start = FlowStart {
        flow_id: "long",
        context: &Map::new(),
        surroundings,
    };
    let mut flow = FlowInstance::create(set.clone(), ScriptLimits::default(), &start)
        .expect("the flow can start");
    assert!(matches!(flow.next(None), FlowStep::Effect(_)));
    flow
}

fn median(times: usize, mut work: impl FnMut()) -> Duration {
    let mut taken: Vec<Duration> = (0..times)
        .map(|_| {
            let started = cpu_time();
            work();
            cpu_time() - started
        })
        .collect();
    taken.sort();
    taken[times / 2]
}

/// CPU time of this thread, which other load on the machine does not change.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn resident_kb() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
