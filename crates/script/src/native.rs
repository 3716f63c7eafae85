//! Functions of the host that the scripts of a realm are built on. Authors never see them.

use crate::copy::{CopyError, copy};
use crate::exception::limit_of;
use crate::host_call::{CallId, HostCall};
use crate::realm::{LogLine, Shared};
use crate::zone;
use rquickjs::{Ctx, Exception, Function, Object, Result, Value as JsValue};
use serde_json::Value;
use std::sync::Arc;

const MAX_LOG_TEXT: usize = 2_000;

pub(crate) fn functions<'js>(ctx: &Ctx<'js>, shared: &Arc<Shared>) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let state = shared.clone();
    let now = move || state.state.lock().now_ms as f64;
    native.set("now", Function::new(ctx.clone(), now)?)?;
    let state = shared.clone();
    let random = move || state.state.lock().random.number();
    native.set("random", Function::new(ctx.clone(), random)?)?;
    let state = shared.clone();
    let byte = move || state.state.lock().random.byte();
    native.set("byte", Function::new(ctx.clone(), byte)?)?;
    let state = shared.clone();
    let uuid = move || state.state.lock().random.uuid();
    native.set("uuid", Function::new(ctx.clone(), uuid)?)?;
    let state = shared.clone();
    let offset = move |instant: f64| zone::offset_ms(&state.state.lock().zone, instant);
    native.set("zoneOffset", Function::new(ctx.clone(), offset)?)?;
    let state = shared.clone();
    let from_local = move |local: f64| zone::instant_of_local(&state.state.lock().zone, local);
    native.set("fromLocal", Function::new(ctx.clone(), from_local)?)?;
    native.set("breaksLimit", breaks_limit(ctx, shared.clone())?)?;
    native.set("log", log(ctx, shared.clone())?)?;
    native.set("host", host(ctx, shared.clone())?)?;
    Ok(native)
}

/// Whether something thrown is a limit of the realm. Its code fails then, whatever it does next.
fn breaks_limit<'js>(ctx: &Ctx<'js>, shared: Arc<Shared>) -> Result<Function<'js>> {
    Function::new(ctx.clone(), move |thrown: JsValue<'js>| -> bool {
        let broken = limit_of(&shared, &thrown);
        let breaks = broken.is_some();
        if let Some(failure) = broken {
            shared.state.lock().broken_limit.get_or_insert(failure);
        }
        breaks
    })
}

/// Queues a host call and returns its index. Arguments are copied now: code may change them later.
fn host<'js>(ctx: &Ctx<'js>, shared: Arc<Shared>) -> Result<Function<'js>> {
    Function::new(
        ctx.clone(),
        move |ctx: Ctx<'js>, call: f64, name: String, args: JsValue<'js>| -> Result<f64> {
            let copied = match copy(&ctx, &args, shared.limits.value_bytes) {
                Ok(copied) => copied,
                Err(CopyError::Threw) => return Err(rquickjs::Error::Exception),
                Err(error) => {
                    let message = format!("{name}: {}", error.message());
                    return Err(Exception::throw_type(&ctx, &message));
                }
            };
            let Some(Value::Array(args)) = copied else {
                return Err(Exception::throw_type(&ctx, "arguments are a list"));
            };
            let mut state = shared.state.lock();
            if state.calls.len() >= shared.limits.host_calls {
                drop(state);
                return Err(Exception::throw_range(&ctx, "too many calls at once"));
            }
            let index = state.next_index;
            state.next_index += 1;
            let call = CallId(call as u64);
            let host_call = HostCall {
                index,
                name,
                args,
                call,
            };
            state.calls.insert(index, host_call);
            Ok(index as f64)
        },
    )
}

fn log<'js>(ctx: &Ctx<'js>, shared: Arc<Shared>) -> Result<Function<'js>> {
    Function::new(
        ctx.clone(),
        move |ctx: Ctx<'js>, level: String, values: rquickjs::Array<'js>| {
            let parts: Vec<String> = (0..values.len().min(32))
                .filter_map(|index| values.get::<JsValue>(index).ok())
                .map(|value| shown(&ctx, &value, shared.limits.value_bytes))
                .collect();
            let mut text = parts.join(" ");
            if let Some((end, _)) = text.char_indices().nth(MAX_LOG_TEXT) {
                text.truncate(end);
            }
            let mut state = shared.state.lock();
            if state.logs.len() < shared.limits.log_lines {
                state.logs.push_back(LogLine { level, text });
            }
        },
    )
}

fn shown<'js>(ctx: &Ctx<'js>, value: &JsValue<'js>, max_bytes: usize) -> String {
    if let Some(error) = value.as_exception() {
        return error.message().unwrap_or_default();
    }
    match copy(ctx, value, max_bytes) {
        Ok(Some(Value::String(text))) => text,
        Ok(Some(value)) => value.to_string(),
        Ok(None) => "undefined".to_owned(),
        Err(error) => {
            ctx.catch();
            format!("[{}]", error.message())
        }
    }
}
