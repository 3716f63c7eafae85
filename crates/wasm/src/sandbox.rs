//! One instance and its limits. Runs in slices of fuel: between two slices the clock and the stop
//! flag are checked.

use crate::imports::HostState;
use crate::limits::PackLimits;
use crate::load_error::PackLoadError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tandem_record::{CapKind, ErrorInfo, PackResult};
use wasmi::{
    CompilationMode, Config, EnforcedLimits, Engine, Extern, Func, Instance, Linker, Memory,
    Module, ResourceLimiter, ResumableCall, Store, Val,
};
use wasmi_core::LimiterError;

/// Fuel of one slice: some milliseconds.
const SLICE: u64 = 1_000_000;
/// Limit of elements of all tables.
const MAX_TABLE: usize = 100_000;
/// Limit of nested calls.
const MAX_DEPTH: usize = 1_000;

/// Stops a call whose answer is no longer needed.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The interpreter every pack shares.
pub(crate) fn engine() -> Engine {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        .compilation_mode(CompilationMode::Eager)
        .allow_start_fn(false)
        .ignore_custom_sections(true)
        .wasm_multi_memory(false)
        .wasm_custom_page_sizes(false)
        .set_max_recursion_depth(MAX_DEPTH)
        .enforced_limits(EnforcedLimits::strict());
    Engine::new(&config)
}

/// Why a call did not return.
#[derive(Debug)]
pub(crate) enum CallError {
    Fuel {
        observed: u64,
    },
    Time {
        observed_ms: u64,
    },
    Memory {
        limit: u64,
        observed: u64,
    },
    Trap(String),
    /// The caller stopped it.
    Stopped,
}

impl CallError {
    /// The result as recorded in a run's log.
    pub(crate) fn into_result(self, limits: &PackLimits) -> PackResult {
        let breached = |kind, limit, observed, code: &str, what: String| PackResult::Breached {
            kind,
            limit,
            observed,
            error: ErrorInfo::new(code, what),
        };
        match self {
            Self::Fuel { observed } => breached(
                CapKind::WasmFuel,
                limits.fuel,
                observed,
                "sandbox_fuel_exceeded",
                format!("the node wanted to do more than {} steps", limits.fuel),
            ),
            Self::Time { observed_ms } => {
                let limit = millis(limits.time);
                breached(
                    CapKind::WasmExecutionTime,
                    limit,
                    observed_ms.max(limit + 1),
                    "sandbox_timeout",
                    format!("the node took longer than {limit} ms"),
                )
            }
            Self::Memory { limit, observed } => breached(
                CapKind::WasmMemory,
                limit,
                observed,
                "sandbox_memory_exceeded",
                format!("the node wanted more than {limit} bytes of memory"),
            ),
            Self::Trap(why) => PackResult::Failed {
                error: ErrorInfo::new("pack_trap", format!("the node broke down: {why}")),
            },
            Self::Stopped => PackResult::Failed {
                error: ErrorInfo::new("pack_trap", "the node was stopped"),
            },
        }
    }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Limits the memory of one instance, and records whether it requested more.
#[derive(Debug)]
pub(crate) struct MemoryLimiter {
    /// The host's limit: a module that exceeds it is stopped.
    ceiling: usize,
    /// The module's own maximum: growth beyond it fails, as the module expects.
    own: Option<usize>,
    requested: Option<usize>,
}

impl MemoryLimiter {
    pub(crate) fn new(limits: &PackLimits, own_pages: Option<u64>) -> Self {
        let own = own_pages.map(|pages| usize::try_from(pages << 16).unwrap_or(usize::MAX));
        Self {
            ceiling: limits.memory_bytes,
            own,
            requested: None,
        }
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> Result<bool, LimiterError> {
        let beyond_own = self.own.is_some_and(|own| desired > own);
        if desired > self.ceiling {
            self.requested = Some(desired);
            return Err(LimiterError::ResourceLimiterDeniedAllocation);
        }
        if beyond_own {
            self.requested = Some(desired);
        }
        Ok(!beyond_own)
    }

    fn table_growing(
        &mut self,
        _: usize,
        desired: usize,
        _: Option<usize>,
    ) -> Result<bool, LimiterError> {
        Ok(desired <= MAX_TABLE)
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        16
    }

    fn memories(&self) -> usize {
        1
    }
}

pub(crate) struct Sandbox {
    store: Store<HostState>,
    instance: Instance,
    memory: Memory,
    limits: PackLimits,
    stop: Stop,
    deadline: Instant,
    began: Instant,
    granted: u64,
}

impl Sandbox {
    pub(crate) fn new(
        module: &Module,
        linker: &Linker<HostState>,
        host_state: HostState,
        limits: PackLimits,
        stop: Stop,
    ) -> Result<Self, PackLoadError> {
        let began = Instant::now();
        let mut store = Store::new(module.engine(), host_state);
        store.limiter(|host_state| &mut host_state.memory_limiter);
        let unusable = |error: wasmi::Error| PackLoadError::Module(error.to_string());
        store.set_fuel(SLICE).map_err(unusable)?;
        let instance = linker
            .instantiate_and_start(&mut store, module)
            .map_err(unusable)?;
        let memory = match instance.get_export(&store, "memory") {
            Some(Extern::Memory(memory)) => memory,
            _ => {
                return Err(PackLoadError::Export {
                    what: "memory".to_owned(),
                });
            }
        };
        // Fuel used for the setup does not count for the call.
        store.set_fuel(SLICE).map_err(unusable)?;
        Ok(Self {
            store,
            instance,
            memory,
            limits,
            stop,
            deadline: began + limits.time,
            began,
            granted: SLICE,
        })
    }

    pub(crate) fn func(&self, name: &str) -> Option<Func> {
        self.instance.get_func(&self.store, name)
    }

    /// Calls an export by name and returns its results.
    pub(crate) fn call(&mut self, name: &str, given: &[Val]) -> Result<Vec<Val>, CallError> {
        let func = self.func(name);
        let func = func.ok_or_else(|| CallError::Trap(format!("it does not export {name}")))?;
        let mut results: Vec<Val> = func
            .ty(&self.store)
            .results()
            .iter()
            .map(|ty| Val::default_for_ty(*ty))
            .collect();
        let mut state = func.call_resumable(&mut self.store, given, &mut results);
        loop {
            state = match state {
                Ok(ResumableCall::Finished) => return Ok(results),
                Ok(ResumableCall::HostTrap(trap)) => {
                    return Err(self.call_error(trap.host_error().to_string()));
                }
                Ok(ResumableCall::OutOfFuel(paused)) => {
                    self.refuel(paused.required_fuel())?;
                    paused.resume(&mut self.store, &mut results)
                }
                Err(error) => return Err(self.call_error(error.to_string())),
            };
        }
    }

    /// Adds fuel for another slice, if the limits allow it.
    fn refuel(&mut self, required: u64) -> Result<(), CallError> {
        if self.stop.is_requested() {
            return Err(CallError::Stopped);
        }
        if Instant::now() >= self.deadline {
            let observed_ms = millis(self.began.elapsed());
            return Err(CallError::Time { observed_ms });
        }
        let left = self.store.get_fuel().unwrap_or(0);
        let spent = self.granted - left;
        let observed = spent.saturating_add(required.max(1));
        if observed > self.limits.fuel {
            return Err(CallError::Fuel { observed });
        }
        let slice = required.max(SLICE).min(self.limits.fuel - spent);
        self.granted = spent + slice;
        let refuelled = self.store.set_fuel(slice);
        refuelled.map_err(|error| CallError::Trap(error.to_string()))
    }

    /// A trap after a refused memory request is reported as a memory error.
    fn call_error(&self, why: String) -> CallError {
        let memory_limiter = &self.store.data().memory_limiter;
        match memory_limiter.requested {
            Some(requested) => {
                let limit = memory_limiter
                    .own
                    .unwrap_or(usize::MAX)
                    .min(memory_limiter.ceiling);
                CallError::Memory {
                    limit: limit as u64,
                    observed: requested as u64,
                }
            }
            None => CallError::Trap(why),
        }
    }

    /// Two numbers, as two values or packed into one.
    pub(crate) fn pair(results: &[Val]) -> Option<(u32, u32)> {
        match results {
            [Val::I32(at), Val::I32(len)] => Some((at.cast_unsigned(), len.cast_unsigned())),
            [Val::I64(packed)] => {
                let packed = packed.cast_unsigned();
                Some(((packed & 0xffff_ffff) as u32, (packed >> 32) as u32))
            }
            _ => None,
        }
    }

    /// Reads the module's memory at a position; an error if it is out of range.
    pub(crate) fn read(&self, (at, len): (u32, u32), most: usize) -> Result<&[u8], String> {
        let (at, len) = (at as usize, len as usize);
        if len > most {
            return Err(format!("{len} bytes, and {most} is the most"));
        }
        let memory = self.memory.data(&self.store);
        let end = at.checked_add(len);
        let bytes = end.and_then(|end| memory.get(at..end));
        bytes.ok_or_else(|| format!("{len} bytes at {at}, which is outside its memory"))
    }

    pub(crate) fn write(&mut self, at: u32, bytes: &[u8]) -> Result<(), CallError> {
        self.memory
            .write(&mut self.store, at as usize, bytes)
            .map_err(|_| {
                CallError::Trap("openwop_alloc gave a place outside its memory".to_owned())
            })
    }

    pub(crate) fn into_host_state(self) -> HostState {
        self.store.into_data()
    }
}
