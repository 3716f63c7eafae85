//! Calls of single functions: those of an agent's configuration, and those inside a parked effect.

use crate::copy::{CopyError, copy};
use crate::failure::{ErrorData, FailureCode, ScriptFailure};
use crate::host_call::CallId;
use crate::realm::{Scope, Settled, Stop};
use rquickjs::{Promise, Value as JsValue};
use serde_json::{Map, Value};

/// One argument of a function. Authors' functions take `ctx` at different places.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    Data(Value),
    Context,
}

/// What a path leads into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    Config,
    /// The effect at which the flow is parked.
    Parked,
    /// The flow with its schemas.
    Registration,
}

impl Root {
    fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Parked => "parked",
            Self::Registration => "registration",
        }
    }
}

impl<'js> Scope<'js> {
    /// `path` is a JSON pointer, `data` what `ctx` shows.
    pub(crate) fn begin_call(
        &self,
        call: CallId,
        (root, path): (Root, &str),
        args: &[Argument],
        data: &Map<String, Value>,
    ) -> Result<(), Stop> {
        let mut places = Vec::new();
        let mut values = Vec::new();
        for (index, argument) in args.iter().enumerate() {
            match argument {
                Argument::Data(value) => values.push(value.clone()),
                Argument::Context => {
                    places.push(Value::from(index));
                    values.push(Value::Null);
                }
            }
        }
        let found: bool = self.driver("call")?.call((
            call.0 as f64,
            root.as_str(),
            Value::from(segments(path)).to_string(),
            Value::Array(values).to_string(),
            Value::Array(places).to_string(),
            json_text(data)?,
        ))?;
        self.require(found, format!("there is no function at '{path}'"))
    }

    pub(crate) fn begin_validation(
        &self,
        call: CallId,
        (root, path): (Root, &str),
        value: &Value,
    ) -> Result<(), Stop> {
        let found = self.validates(call, (root, path), value)?;
        self.require(found, format!("there is no Standard Schema at '{path}'"))
    }

    /// Begins a validation; false when there is no Standard Schema at the path.
    pub(crate) fn validates(
        &self,
        call: CallId,
        (root, path): (Root, &str),
        value: &Value,
    ) -> Result<bool, Stop> {
        Ok(self.driver("validate")?.call((
            call.0 as f64,
            root.as_str(),
            Value::from(segments(path)).to_string(),
            value.to_string(),
        ))?)
    }

    fn require(&self, found: bool, message: String) -> Result<(), Stop> {
        if found {
            return Ok(());
        }
        Err(ScriptFailure::new(FailureCode::Exception, message).into())
    }

    /// Delivers an answer to a host call that waits for one.
    pub(crate) fn answer(
        &self,
        index: u64,
        answer: Result<&Value, &ErrorData>,
    ) -> Result<(), Stop> {
        self.shared.state.lock().calls.remove(&index);
        match answer {
            Ok(value) => self
                .driver("answer")?
                .call::<_, ()>((index as f64, value.to_string()))?,
            Err(error) => self
                .driver("refuse")?
                .call::<_, ()>((index as f64, json_text(error)?))?,
        }
        Ok(())
    }

    pub(crate) fn result_of(&self, call: CallId) -> Result<Settled<'js>, Stop> {
        let promise: Promise = self.driver("result")?.call((call.0 as f64,))?;
        Ok(self.settled(&promise))
    }

    /// The outcome of a function call, or `None` while it waits.
    pub(crate) fn outcome_of(&self, call: CallId) -> Result<Option<Value>, Stop> {
        match self.result_of(call)? {
            Settled::Pending => Ok(None),
            Settled::Rejected(thrown) => Err(self.failure_of(thrown).into()),
            Settled::Fulfilled(value) => self.value_of(&value).map(Some),
        }
    }

    /// A result as data. `undefined` is null.
    pub(crate) fn value_of(&self, value: &JsValue<'js>) -> Result<Value, Stop> {
        match copy(&self.ctx, value, self.shared.limits.value_bytes) {
            Ok(value) => Ok(value.unwrap_or(Value::Null)),
            Err(CopyError::Threw) => Err(self.failure_of(self.ctx.catch()).into()),
            Err(error @ CopyError::TooLarge(_)) => {
                Err(ScriptFailure::new(FailureCode::FlowLimit, error.message()).into())
            }
            Err(error @ CopyError::NotData(_)) => {
                Err(ScriptFailure::new(FailureCode::Exception, error.message()).into())
            }
        }
    }
}

pub(crate) fn json_text(value: &impl serde::Serialize) -> Result<String, Stop> {
    serde_json::to_string(value).map_err(|error| {
        ScriptFailure::new(FailureCode::Exception, format!("not JSON: {error}")).into()
    })
}

fn segments(pointer: &str) -> Vec<String> {
    let parts = pointer.split('/').skip(1);
    parts
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect()
}
