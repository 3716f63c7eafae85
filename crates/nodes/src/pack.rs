//! Calls of pack nodes: a limited number at once, on blocking threads, stopped when no task waits
//! for them any more.

use std::sync::Arc;
use tandem_record::{Effect, EffectOutcome, ErrorInfo, NodeId, PackCall, RunId};
use tandem_wasm::{Caller, Packs, Stop};
use tokio::sync::Semaphore;

/// Limit of concurrent calls, however many processors there are: each may use its full memory
/// limit.
const MAX_CONCURRENT_CALLS: usize = 8;

pub struct PackCaller {
    packs: Arc<Packs>,
    free: Arc<Semaphore>,
}

/// Stops a call whose task was dropped; otherwise its thread would run to the time limit.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.now();
    }
}

impl PackCaller {
    pub fn new(packs: Arc<Packs>) -> Self {
        // One processor stays free for everything else.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let at_once = processors.saturating_sub(1).clamp(1, MAX_CONCURRENT_CALLS);
        Self {
            packs,
            free: Arc::new(Semaphore::new(at_once)),
        }
    }

    pub(crate) async fn call(
        &self,
        run: &RunId,
        effect: &Effect,
        node: &NodeId,
        attempt: u32,
        call: &PackCall,
    ) -> EffectOutcome {
        let permit = Arc::clone(&self.free).acquire_owned().await;
        let stop = Stop::default();
        let stop_on_drop = StopOnDrop(stop.clone());
        let packs = Arc::clone(&self.packs);
        let (id, run) = (effect.id.clone(), run.clone());
        let (node, call) = (node.clone(), call.clone());
        let called = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let who = Caller {
                effect: &id,
                run: &run,
                node: &node,
                attempt,
            };
            packs.call(who, &call, stop)
        });
        let answer = called.await;
        drop(stop_on_drop);
        match answer {
            Ok(answer) => EffectOutcome::Pack(Box::new(answer)),
            Err(error) => {
                tracing::error!(effect = %effect.id, %error, "a call of a pack's node was lost");
                EffectOutcome::Failed {
                    error: ErrorInfo::new("internal_error", "The call of the node was lost."),
                }
            }
        }
    }
}
