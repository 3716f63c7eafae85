//! One interpreter with its own heap: limits, environment, modules of a source set, job queue.
//!
//! Everything that must outlive a call lives inside the interpreter, in the closure of `driver.js`. So a
//! realm can move between threads, and nothing can outlive its runtime.

use crate::failure::{FailureCode, ScriptFailure};
use crate::host_call::HostCall;
use crate::limits::ScriptLimits;
use crate::native;
use crate::random::SeededRandom;
use crate::source_set::{BUILT_IN, SourceSet};
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Error, Function, Module, Object, Promise, Runtime, Value as JsValue};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The standard library without `WeakRef` and `performance`. `Eval` compiles modules; the global
/// function of that name is removed.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

const ENVIRONMENT: &str = include_str!("js/environment.js");
const BOUNDS: &str = include_str!("js/bounds.js");
const DATE: &str = include_str!("js/date.js");
const CONTEXT: &str = include_str!("js/context.js");
const DRIVER: &str = include_str!("js/driver.js");
const TANDEM: &str = include_str!("js/tandem.js");

/// Jobs between two looks at the CPU time. The interpreter looks too, but not between short jobs.
const JOBS_BETWEEN_CHECKS: u32 = 64;
/// Promise jobs between two effects. An endless chain of them may use up the heap before the CPU time, and the
/// job that finds no memory is lost without a word.
const MAX_JOBS: u32 = 50_000;

/// What a realm sees of the world.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// What `Date.now()` gives, in milliseconds since 1970.
    pub now_ms: i64,
    /// Seed of `Math.random()` and `crypto`.
    pub seed: Vec<u8>,
    /// IANA name of the zone of local times. An unknown one counts as UTC.
    pub time_zone: String,
}

/// A line that code wrote to `console`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub level: String,
    pub text: String,
}

/// State that native functions share with the host.
pub(crate) struct Shared {
    pub(crate) state: Mutex<SharedState>,
    pub(crate) limits: ScriptLimits,
    /// CPU time of the current thread at which code is interrupted.
    deadline_ns: AtomicU64,
    pub(crate) was_interrupted: AtomicBool,
    /// How often the interpreter looked at the CPU limit since the budget was renewed.
    looks: AtomicU64,
}

pub(crate) struct SharedState {
    pub(crate) now_ms: i64,
    pub(crate) zone: TimeZone,
    pub(crate) random: SeededRandom,
    pub(crate) logs: VecDeque<LogLine>,
    /// Host calls without an answer, by index.
    pub(crate) calls: BTreeMap<u64, HostCall>,
    pub(crate) next_index: u64,
    /// A limit that code broke and caught.
    pub(crate) broken_limit: Option<ScriptFailure>,
}

pub(crate) struct Realm {
    context: Context,
    runtime: Runtime,
    pub(crate) shared: Arc<Shared>,
    set: Arc<SourceSet>,
    /// CPU time left until the budget is renewed.
    cpu_left_ns: u64,
}

/// Why work inside a realm stopped.
pub(crate) enum Stop {
    Engine(Error),
    Failure(ScriptFailure),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<ScriptFailure> for Stop {
    fn from(failure: ScriptFailure) -> Self {
        Self::Failure(failure)
    }
}

impl Realm {
    pub(crate) fn new(
        set: Arc<SourceSet>,
        limits: ScriptLimits,
        surroundings: &Surroundings,
    ) -> Result<Self, ScriptFailure> {
        let no_memory =
            |error: Error| ScriptFailure::new(FailureCode::FlowLimit, error.to_string());
        let zone = TimeZone::get(&surroundings.time_zone).unwrap_or(TimeZone::UTC);
        let shared = Arc::new(Shared {
            state: Mutex::new(SharedState {
                now_ms: surroundings.now_ms,
                zone,
                random: SeededRandom::new(&surroundings.seed),
                logs: VecDeque::new(),
                calls: BTreeMap::new(),
                next_index: 0,
                broken_limit: None,
            }),
            limits,
            deadline_ns: AtomicU64::new(u64::MAX),
            was_interrupted: AtomicBool::new(false),
            looks: AtomicU64::new(0),
        });
        let runtime = Runtime::new().map_err(no_memory)?;
        runtime.set_memory_limit(limits.heap_bytes);
        runtime.set_max_stack_size(limits.stack_bytes);
        runtime.set_loader(SetModules(set.clone()), SetModules(set.clone()));
        let watched = shared.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || {
            watched.looks.fetch_add(1, Ordering::Relaxed);
            watched.is_over()
        })));
        let context = Context::custom::<Intrinsics>(&runtime).map_err(no_memory)?;
        let mut realm = Self {
            context,
            runtime,
            shared,
            set,
            cpu_left_ns: 0,
        };
        realm.renew_cpu(limits.load_cpu_ms.max(limits.cpu_ms));
        realm.prepare()?;
        Ok(realm)
    }

    fn prepare(&mut self) -> Result<(), ScriptFailure> {
        let shared = self.shared.clone();
        self.enter_unprepared(|ctx| {
            let native = native::functions(ctx, &shared)?;
            let script = |name: &str, source: &str| -> Result<Function<'_>, Error> {
                let mut options = EvalOptions::default();
                options.filename = Some(name.to_owned());
                ctx.eval_with_options(source, options)
            };
            script("tandem:environment", ENVIRONMENT)?.call::<_, ()>((native.clone(),))?;
            script("tandem:bounds", BOUNDS)?.call::<_, ()>(())?;
            script("tandem:date", DATE)?.call::<_, ()>((native.clone(),))?;
            let build_contexts = script("tandem:context", CONTEXT)?;
            let driver: Object = script("tandem:driver", DRIVER)?.call((native, build_contexts))?;
            ctx.store_userdata(driver)
                .expect("nothing reads the driver yet");
            Ok(())
        })
    }

    fn enter_unprepared(
        &mut self,
        work: impl for<'js> FnOnce(&Ctx<'js>) -> Result<(), Error>,
    ) -> Result<(), ScriptFailure> {
        self.context.with(|ctx| {
            work(&ctx).map_err(|error| {
                let detail = match error {
                    Error::Exception => format!("{:?}", ctx.catch()),
                    other => other.to_string(),
                };
                ScriptFailure::new(FailureCode::FlowLimit, format!("no realm: {detail}"))
            })
        })
    }

    /// Runs code of the realm on this thread, within the CPU time that is left.
    pub(crate) fn enter<T>(
        &mut self,
        work: impl for<'js> FnOnce(&Scope<'js>) -> Result<T, Stop>,
    ) -> Result<T, ScriptFailure> {
        let started = thread_cpu_ns();
        self.shared
            .deadline_ns
            .store(started + self.cpu_left_ns, Ordering::Relaxed);
        let shared = self.shared.clone();
        let set = self.set.clone();
        let result = self.context.with(|ctx| {
            let scope = Scope {
                driver: driver(&ctx),
                ctx,
                shared,
                set,
            };
            let result = work(&scope).map_err(|stop| scope.failure_of_stop(stop));
            // An interrupted job leaves no exception behind.
            match scope.check_interrupt() {
                Ok(()) => result,
                Err(failure) => Err(failure),
            }
        });
        let used = thread_cpu_ns().saturating_sub(started);
        self.cpu_left_ns = self.cpu_left_ns.saturating_sub(used);
        self.shared.was_interrupted.store(false, Ordering::Relaxed);
        result
    }

    pub(crate) fn renew_cpu(&mut self, budget_ms: u64) {
        self.cpu_left_ns = budget_ms * 1_000_000;
        self.shared.looks.store(0, Ordering::Relaxed);
    }

    pub(crate) fn set_now(&self, now_ms: i64) {
        self.shared.state.lock().now_ms = now_ms;
    }

    pub(crate) fn take_logs(&self) -> Vec<LogLine> {
        self.shared.state.lock().logs.drain(..).collect()
    }

    pub(crate) fn limits(&self) -> &ScriptLimits {
        &self.shared.limits
    }

    /// Bytes that the interpreter has allocated.
    pub(crate) fn heap_bytes(&self) -> u64 {
        self.runtime.memory_usage().malloc_size.max(0) as u64
    }
}

impl Shared {
    /// Whether code has run long enough for the interpreter to look at the CPU limit.
    pub(crate) fn was_looked_at(&self) -> bool {
        self.looks.load(Ordering::Relaxed) > 0
    }

    fn is_over(&self) -> bool {
        let over = thread_cpu_ns() > self.deadline_ns.load(Ordering::Relaxed);
        if over {
            self.was_interrupted.store(true, Ordering::Relaxed);
        }
        over
    }
}

/// CPU time rather than wall time, so that a busy machine does not fail flows.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

pub(crate) fn driver<'js>(ctx: &Ctx<'js>) -> Object<'js> {
    let stored = ctx.userdata::<Object<'js>>();
    stored
        .expect("a realm stores its driver before it runs anything else")
        .clone()
}

/// A realm that is being used.
pub(crate) struct Scope<'js> {
    pub(crate) ctx: Ctx<'js>,
    driver: Object<'js>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) set: Arc<SourceSet>,
}

pub(crate) enum Settled<'js> {
    Pending,
    Fulfilled(JsValue<'js>),
    Rejected(JsValue<'js>),
}

impl<'js> Scope<'js> {
    pub(crate) fn driver(&self, function: &str) -> Result<Function<'js>, Error> {
        self.driver.get(function)
    }

    pub(crate) fn driver_object(&self) -> Object<'js> {
        self.driver.clone()
    }

    /// Runs jobs until none is left.
    pub(crate) fn run_jobs(&self) -> Result<(), Stop> {
        let mut jobs = 0u32;
        while self.ctx.execute_pending_job() {
            jobs += 1;
            if jobs > MAX_JOBS {
                let message =
                    format!("the code ran more than {MAX_JOBS} promise jobs without yielding");
                return Err(ScriptFailure::new(FailureCode::FlowLimit, message).into());
            }
            if jobs.is_multiple_of(JOBS_BETWEEN_CHECKS) {
                self.shared.is_over();
            }
            self.check_interrupt()?;
        }
        // Built-in functions may have used the time up without a look at it.
        self.shared.is_over();
        self.check_interrupt()?;
        Ok(())
    }

    fn check_interrupt(&self) -> Result<(), ScriptFailure> {
        if let Some(broken) = self.shared.state.lock().broken_limit.take() {
            return Err(broken);
        }
        if !self.shared.was_interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(ScriptFailure::new(
            FailureCode::FlowLimit,
            "the code used up its CPU time without yielding",
        ))
    }

    pub(crate) fn settled(&self, promise: &Promise<'js>) -> Settled<'js> {
        match promise.state() {
            PromiseState::Pending => Settled::Pending,
            PromiseState::Resolved => match promise.result::<JsValue>() {
                Some(Ok(value)) => Settled::Fulfilled(value),
                _ => Settled::Pending,
            },
            PromiseState::Rejected => {
                // Reading the reason throws it.
                let _ = promise.result::<JsValue>();
                Settled::Rejected(self.ctx.catch())
            }
        }
    }

    /// Evaluates a module of the source set; its namespace.
    pub(crate) fn import(&self, path: &str) -> Result<Object<'js>, Stop> {
        let promise = Module::import(&self.ctx, path)?;
        self.run_jobs()?;
        match self.settled(&promise) {
            Settled::Fulfilled(namespace) => Ok(Object::from_value(namespace)?),
            Settled::Rejected(error) => Err(self.failure_of(error).into()),
            Settled::Pending => Err(ScriptFailure::new(
                FailureCode::ForeignAwait,
                format!("{path} waits at its top level for something that never happens"),
            )
            .into()),
        }
    }
}

/// Resolves and loads from the source set and nothing else.
struct SetModules(Arc<SourceSet>);

impl Resolver for SetModules {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        let from = self.0.modules.get(base);
        let imported = from.and_then(|module| module.imports.get(name));
        match imported {
            Some(path) => Ok(path.clone()),
            None if from.is_none() && self.0.modules.contains_key(name) => Ok(name.to_owned()),
            None => Err(Error::new_resolving(base, name)),
        }
    }
}

impl Loader for SetModules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        if name == BUILT_IN[0] {
            return Module::declare(ctx.clone(), name, TANDEM);
        }
        match self.0.modules.get(name) {
            Some(module) => Module::declare(ctx.clone(), name, module.source.as_str()),
            None => Err(Error::new_loading(name)),
        }
    }
}
