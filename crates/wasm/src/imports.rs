//! The host functions a module can import: a log, the recorded time, and pseudo-random bytes that
//! are the same whenever the call is repeated.

use crate::limits::PackLimits;
use crate::load_error::PackLoadError;
use crate::sandbox::MemoryLimiter;
use sha2::{Digest as _, Sha256};
use tandem_record::{PackLogLine, Timestamp};
use wasmi::{Caller, Engine, Error, Extern, FuncType, Linker, Memory, Module};

const NAMESPACE: &str = "openwop";
const LEVELS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];
/// Limit of bytes in one request for random bytes.
const MAX_RANDOM: u32 = 64 << 10;

/// The host's side of one call.
#[derive(Debug)]
pub(crate) struct HostState {
    pub(crate) memory_limiter: MemoryLimiter,
    at: Timestamp,
    seed: String,
    drawn: u64,
    logged: Vec<PackLogLine>,
    limits: PackLimits,
}

impl HostState {
    pub(crate) fn new(
        limits: PackLimits,
        own_pages: Option<u64>,
        at: Timestamp,
        seed: String,
    ) -> Self {
        Self {
            memory_limiter: MemoryLimiter::new(&limits, own_pages),
            at,
            seed,
            drawn: 0,
            logged: Vec::new(),
            limits,
        }
    }

    pub(crate) fn into_log(self) -> Vec<PackLogLine> {
        self.logged
    }

    fn log(&mut self, level: i32, message: &[u8]) {
        if self.logged.len() >= self.limits.log_lines {
            return;
        }
        let level = usize::try_from(level).ok().and_then(|l| LEVELS.get(l));
        self.logged.push(PackLogLine {
            level: level.copied().unwrap_or("info").to_owned(),
            message: String::from_utf8_lossy(message).into_owned(),
        });
    }

    /// The next bytes of a stream that depends only on the call.
    fn random(&mut self, out: &mut [u8]) {
        for block in out.chunks_mut(32) {
            let digest = Sha256::new()
                .chain_update(self.seed.as_bytes())
                .chain_update(self.drawn.to_be_bytes())
                .finalize();
            self.drawn += 1;
            block.copy_from_slice(&digest[..block.len()]);
        }
    }
}

/// All host functions, under their import names.
pub(crate) fn linker(engine: &Engine) -> Linker<HostState> {
    let mut linker = Linker::new(engine);
    let fresh = "each import is defined once";
    linker
        .func_wrap(
            NAMESPACE,
            "openwop_log",
            |mut caller: Caller<'_, HostState>,
             level: i32,
             at: u32,
             len: u32|
             -> Result<(), Error> {
                let most = caller.data().limits.log_line_bytes;
                let len = len.min(u32::try_from(most).unwrap_or(u32::MAX));
                let memory = memory(&caller)?;
                let (bytes, host_state) = memory.data_and_store_mut(&mut caller);
                let message = slice(bytes, at, len)?;
                host_state.log(level, message);
                Ok(())
            },
        )
        .expect(fresh);
    linker
        .func_wrap(
            NAMESPACE,
            "openwop_now_ms",
            |caller: Caller<'_, HostState>| -> i64 { caller.data().at.0 },
        )
        .expect(fresh);
    linker
        .func_wrap(
            NAMESPACE,
            "openwop_random",
            |mut caller: Caller<'_, HostState>, at: u32, len: u32| -> Result<(), Error> {
                if len > MAX_RANDOM {
                    return Err(Error::new(format!(
                        "openwop_random gives at most {MAX_RANDOM} bytes at once"
                    )));
                }
                let memory = memory(&caller)?;
                let (bytes, host_state) = memory.data_and_store_mut(&mut caller);
                let start = at as usize;
                let out = bytes.get_mut(start..start + len as usize);
                host_state.random(out.ok_or_else(outside)?);
                Ok(())
            },
        )
        .expect(fresh);
    linker
}

/// Refuses a module that imports anything else.
pub(crate) fn check(module: &Module) -> Result<(), PackLoadError> {
    for import in module.imports() {
        let served = match (import.module(), import.name()) {
            (NAMESPACE, "openwop_log") => "(i32 i32 i32)",
            (NAMESPACE, "openwop_now_ms") => "() -> i64",
            (NAMESPACE, "openwop_random") => "(i32 i32)",
            (module, name) => {
                return Err(PackLoadError::Import {
                    module: module.to_owned(),
                    name: name.to_owned(),
                });
            }
        };
        let ty = import.ty().func().map(signature);
        if ty.as_deref() != Some(served) {
            return Err(PackLoadError::Module(format!(
                "it imports {} as something else than a function {served}",
                import.name()
            )));
        }
    }
    Ok(())
}

pub(crate) fn signature(ty: &FuncType) -> String {
    let names = |types: &[wasmi::ValType]| {
        let names: Vec<String> = types
            .iter()
            .map(|t| format!("{t:?}").to_lowercase())
            .collect();
        names.join(" ")
    };
    let params = names(ty.params());
    match ty.results() {
        [] => format!("({params})"),
        results => format!("({params}) -> {}", names(results)),
    }
}

fn memory(caller: &Caller<'_, HostState>) -> Result<Memory, Error> {
    match caller.get_export("memory") {
        Some(Extern::Memory(memory)) => Ok(memory),
        _ => Err(Error::new("the module has no memory")),
    }
}

fn slice(bytes: &[u8], at: u32, len: u32) -> Result<&[u8], Error> {
    let start = at as usize;
    bytes.get(start..start + len as usize).ok_or_else(outside)
}

fn outside() -> Error {
    Error::new("it named a place outside its memory")
}
