//! Watches the folders of agents and takes changes over.

use crate::discover::Snapshot;
use crate::registry::AgentRegistry;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks at the files.
const INTERVAL: Duration = Duration::from_millis(200);
/// Looks after which files are loaded although they still change.
const MAX_LOOKS: u32 = 5;
/// Parsers and the interpreter need a deep stack.
const STACK_BYTES: usize = 4 << 20;

/// Watches as long as it exists.
pub struct AgentWatcher {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl AgentWatcher {
    pub fn start(registry: Arc<AgentRegistry>) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let watch = move || {
            let mut changes = PendingChange::default();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let files = registry.look();
                if changes.is_settled(registry.is_loaded(&files), files) {
                    registry.reload_changed();
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("agent-watcher".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(watch)?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for AgentWatcher {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the watcher was reported by its thread.
            let _ = thread.join();
        }
    }
}

/// A change is taken over when two looks show the same files, so that a half-written file is rarely read.
#[derive(Default)]
pub(crate) struct PendingChange {
    seen: Option<Snapshot>,
    looks: u32,
}

impl PendingChange {
    pub(crate) fn is_settled(&mut self, is_loaded: bool, files: Snapshot) -> bool {
        if is_loaded {
            *self = Self::default();
            return false;
        }
        self.looks += 1;
        let is_settled = self.seen.as_ref() == Some(&files) || self.looks >= MAX_LOOKS;
        if is_settled {
            *self = Self::default();
        } else {
            self.seen = Some(files);
        }
        is_settled
    }
}
