//! The thread for requests with large bodies.

use tokio::runtime::{Builder, Handle, Runtime};

/// Its niceness: it gets less processor time than the others.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// One thread with low priority: large requests use the processor time that others leave. It ends when this
/// is dropped, in the background.
pub(crate) struct LargeRequestThread(Option<Runtime>);

impl LargeRequestThread {
    pub(crate) fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("large-requests")
            .on_thread_start(|| {
                // On Linux niceness is per thread. If it cannot be changed, the thread has normal
                // priority.
                #[cfg(target_os = "linux")]
                let _ = rustix::process::nice(NICENESS);
            })
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    pub(crate) fn handle(&self) -> Handle {
        let runtime = self.0.as_ref();
        runtime.expect("only drop takes it").handle().clone()
    }
}

impl Drop for LargeRequestThread {
    fn drop(&mut self) {
        // It may be dropped where nothing may block.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
