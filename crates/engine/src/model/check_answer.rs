//! Checks a model's answer, in this order: refused, truncated, not JSON, not of the required shape.
//! Error texts come from the schema alone, so that anyone may see them: they quote neither the
//! prompt nor the answer.

use super::recover;
use serde_json::Value;
use tandem_record::{EnvelopeFault, ModelAnswer, ModelRefusal, ModelStop, RecoveryPath};
use tandem_schema::{Meter, Schema, ValidationError, ValidationErrorKind, ValidationFailure};

/// Maximum number of errors reported for one answer.
const MAX_FAULTS: usize = 8;
const NOT_JSON: &str = "the answer is not JSON";

pub(crate) struct CheckedAnswer {
    /// How JSON was found in an answer that was not JSON alone, and where.
    pub(crate) recovered: Option<(RecoveryPath, u64)>,
    pub(crate) verdict: AnswerVerdict,
}

pub(crate) enum AnswerVerdict {
    Accepted(Value),
    Refused(ModelRefusal),
    Truncated,
    /// A retry with a correction may help.
    Unusable {
        fault: EnvelopeFault,
        error: String,
    },
}

/// `shape` is absent where any text is accepted.
pub(crate) fn check_answer(
    answer: &ModelAnswer,
    shape: Option<&Schema>,
    meter: &Meter,
) -> CheckedAnswer {
    let as_it_is = |verdict| CheckedAnswer {
        recovered: None,
        verdict,
    };
    if let Some(refusal) = &answer.refusal {
        return as_it_is(AnswerVerdict::Refused(refusal.clone()));
    }
    let text = answer.text.as_deref().unwrap_or_default();
    let Some(shape) = shape else {
        // A truncated text is still a text; the stop reason is recorded beside it.
        return as_it_is(AnswerVerdict::Accepted(Value::from(text)));
    };
    if matches!(answer.stop, ModelStop::MaxTokens | ModelStop::Length) {
        return as_it_is(AnswerVerdict::Truncated);
    }
    let found = match &answer.data {
        Some(data) => Some((data.clone(), None)),
        None => recover::parse(text),
    };
    let Some((value, recovered)) = found else {
        return as_it_is(AnswerVerdict::Unusable {
            fault: EnvelopeFault::ParseError,
            error: NOT_JSON.to_owned(),
        });
    };
    let error = match shape.check(&value, meter, MAX_FAULTS, fault) {
        Ok(()) => None,
        Err(ValidationFailure::Errors(faults)) => Some(faults.join("; ")),
        Err(failure) => Some(format!("the answer {}", failure.message())),
    };
    let verdict = match error {
        None => AnswerVerdict::Accepted(value),
        Some(error) => AnswerVerdict::Unusable {
            fault: EnvelopeFault::SchemaViolation,
            error,
        },
    };
    CheckedAnswer { recovered, verdict }
}

fn fault(error: &ValidationError<'_>) -> String {
    let rule = error.schema_path();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            format!("{rule}: the property {property} is missing")
        }
        kind => format!("{rule}: `{}` is not met", kind.keyword()),
    }
}
