//! The generator of a flow inside its realm: where it is found, and what it did when it was resumed.

use crate::copy::{CopyError, copy};
use crate::failure::{FailureCode, ScriptFailure};
use crate::flow::FlowStep;
use crate::host_call::CallId;
use crate::realm::{Scope, Settled, Stop};
use crate::source_set::FlowLocation;
use rquickjs::{Function, Object, Value as JsValue};
use serde_json::Value;

/// What a generator did when it was resumed.
pub(crate) enum Moved {
    Waits,
    Did(FlowStep),
}

/// The function of a flow, and the flow as it is registered.
pub(crate) fn find_flow<'js>(
    scope: &Scope<'js>,
    flow_id: &str,
) -> Result<(Function<'js>, JsValue<'js>), Stop> {
    let missing = || {
        let message = format!("the source has no flow '{flow_id}'");
        ScriptFailure::new(FailureCode::Exception, message)
    };
    let location = scope.set.flows.get(flow_id).ok_or_else(missing)?;
    let namespace = scope.import(&scope.set.entry)?;
    let value: JsValue = match location {
        FlowLocation::Export(name) => namespace.get(name.as_str())?,
        FlowLocation::Config => {
            let config: Object = namespace.get("default")?;
            let flows: Object = config.get("flows")?;
            flows.get(flow_id)?
        }
    };
    let run = match value.as_object() {
        Some(registration) if !value.is_function() => registration.get("run")?,
        _ => value.clone(),
    };
    Ok((run.into_function().ok_or_else(missing)?, value))
}

/// Looks at the result of the last resumption.
pub(crate) fn moved(scope: &Scope<'_>, is_closing: bool) -> Result<Moved, Stop> {
    let result = match scope.result_of(CallId::FLOW)? {
        Settled::Pending => return Ok(Moved::Waits),
        Settled::Rejected(thrown) => {
            let failure = scope.failure_of(thrown);
            return match failure.code {
                // Calls made before it are still answered.
                FailureCode::Exception => Ok(Moved::Did(FlowStep::Failed(failure))),
                _ => Err(failure.into()),
            };
        }
        Settled::Fulfilled(result) => Object::from_value(result)?,
    };
    let value: JsValue = result.get("value")?;
    let is_done: bool = result.get("done")?;
    let yielded = if is_done {
        JsValue::new_undefined(scope.ctx.clone())
    } else {
        value.clone()
    };
    let forgotten: Option<String> = scope.driver("yielded")?.call((yielded,))?;
    if let Some(helper) = forgotten
        && !is_closing
    {
        let message = format!(
            "ctx.{helper}() made an effect that was not yielded; write `yield ctx.{helper}(…)` instead of `await`"
        );
        return Err(ScriptFailure::new(FailureCode::EffectNotYielded, message).into());
    }
    if is_done {
        return Ok(Moved::Did(FlowStep::Ended(scope.value_of(&value)?)));
    }
    if !value.is_object() || value.is_array() || value.is_function() {
        let problem = format!(
            "a flow yields effect objects, not a value of type {}",
            value.type_name()
        );
        return Ok(Moved::Did(FlowStep::NotAnEffect { problem }));
    }
    match copy(&scope.ctx, &value, scope.shared.limits.value_bytes) {
        Ok(effect) => Ok(Moved::Did(FlowStep::Effect(effect.unwrap_or(Value::Null)))),
        Err(CopyError::TooLarge(limit)) => {
            let message = format!("the effect is larger than {limit} bytes");
            Err(ScriptFailure::new(FailureCode::FlowLimit, message).into())
        }
        Err(CopyError::NotData(problem)) => Ok(Moved::Did(FlowStep::NotAnEffect { problem })),
        Err(CopyError::Threw) => {
            let failure = scope.failure_of(scope.ctx.catch());
            if failure.code == FailureCode::FlowLimit {
                return Err(failure.into());
            }
            let problem = format!("reading the effect threw: {}", failure.message);
            Ok(Moved::Did(FlowStep::NotAnEffect { problem }))
        }
    }
}
