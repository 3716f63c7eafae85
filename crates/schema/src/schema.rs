//! A schema that is safe to evaluate.

use crate::cost::{Costs, Estimate};
use crate::graph::Graph;
use crate::known_keys::{KnownKeys, UnknownKey};
use crate::limits::{Budget, MAX_BACKWARD_BYTES, MAX_WORK, PATTERN_CACHE_BYTES};
use crate::measure::Shape;
use crate::meter::Meter;
use crate::refusal::SchemaRefusal;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::fmt::{self, Write};

/// Maximum characters of a message about one error.
const MAX_MESSAGE: usize = 300;

pub struct Schema {
    form: Form,
    weight: usize,
    keys: Option<KnownKeys>,
}

enum Form {
    Usable {
        validator: Box<Validator>,
        costs: Costs,
        /// The host's own schema: its errors are always listed.
        own: bool,
    },
    /// Accepted by an earlier version of the host. No value matches.
    Refused(SchemaRefusal),
}

/// Why a value does not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValidationFailure<T> {
    Errors(Vec<T>),
    /// It does not match, and listing the errors would take too much work.
    Unlisted,
    /// Checking it would take too much work. It was not checked.
    TooMuchWork,
    /// The schema itself is no longer accepted.
    SchemaRefused(SchemaRefusal),
    /// The work limit of this place is used up; the [`Meter`] records it. Not a result.
    Deferred,
}

impl<T> ValidationFailure<T> {
    /// The code of a failure that is not about the value.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Errors(_) | Self::Unlisted => None,
            Self::TooMuchWork | Self::Deferred => Some("schema_work_exceeded"),
            Self::SchemaRefused(_) => Some("schema_refused"),
        }
    }

    /// The message where no errors are listed.
    pub fn message(&self) -> String {
        match self {
            Self::Errors(_) | Self::Unlisted => "does not fit the schema".to_owned(),
            Self::TooMuchWork | Self::Deferred => {
                "is too large or nested too deep to be checked against its schema".to_owned()
            }
            Self::SchemaRefused(why) => format!(
                "cannot be checked: its schema is not accepted any more, at {:?}: {}",
                why.at, why.message
            ),
        }
    }
}

impl Schema {
    /// Compiles a schema within the budget of its document.
    pub fn compile(document: &Value, budget: &mut Budget) -> Result<Self, SchemaRefusal> {
        let graph = Graph::read(document, budget)?;
        let costs = Costs::of(&graph)?;
        let patterns = PatternOptions::regex()
            .size_limit(MAX_BACKWARD_BYTES)
            .dfa_size_limit(PATTERN_CACHE_BYTES);
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            .build(document)
            .map_err(|error| {
                let message = format!("not a usable JSON Schema: {}", short_message(&error));
                SchemaRefusal::new(error.instance_path().as_str(), message)
            })?;
        Ok(Self {
            keys: None,
            weight: weight(&graph),
            form: Form::Usable {
                validator: Box::new(validator),
                costs,
                own: false,
            },
        })
    }

    /// A schema that is part of the host.
    ///
    /// # Panics
    /// If it does not compile within the limits.
    pub fn builtin(document: &Value) -> Self {
        let mut schema = Self::compile(document, &mut Budget::default())
            .unwrap_or_else(|why| panic!("a schema of the host compiles: {why} at {:?}", why.at));
        if let Form::Usable { own, .. } = &mut schema.form {
            *own = true;
        }
        schema
    }

    /// Stands for a schema that was accepted earlier and no longer is.
    pub fn refused(why: SchemaRefusal) -> Self {
        Self {
            form: Form::Refused(why),
            weight: 0,
            keys: None,
        }
    }

    /// Also remembers the keys that are declared: see [`Self::unknown_keys`]. `document` is what this
    /// was compiled from.
    #[must_use]
    pub fn keeping_keys(mut self, document: &Value) -> Self {
        self.keys = Some(KnownKeys::of(document));
        self
    }

    /// Keys of a value that the schema does not declare, where it declares keys and does not allow
    /// others in so many words. Nothing is found unless the keys were kept.
    pub fn unknown_keys<'a>(&'a self, value: &'a Value) -> Vec<UnknownKey<'a>> {
        let keys = self.keys.as_ref();
        keys.map(|keys| keys.unknown_in(value)).unwrap_or_default()
    }

    /// Approximate bytes of memory it takes.
    pub fn weight(&self) -> usize {
        self.weight
    }

    /// Whether a value matches.
    pub fn fits(&self, value: &Value, meter: &Meter) -> Result<bool, ValidationFailure<()>> {
        let (validator, _, _) = self.admitted(value, meter)?;
        Ok(validator.is_valid(value))
    }

    /// Checks a value and describes at most `max` errors.
    pub fn check<T>(
        &self,
        value: &Value,
        meter: &Meter,
        max: usize,
        describe: impl Fn(&ValidationError<'_>) -> T,
    ) -> Result<(), ValidationFailure<T>> {
        let (validator, estimate, one_by_one) = self.admitted(value, meter)?;
        if validator.is_valid(value) {
            return Ok(());
        }
        // The crate collects all errors before it returns the first.
        if estimate.errors.is_some() {
            let errors = validator.iter_errors(value).take(max);
            return Err(ValidationFailure::Errors(
                errors.map(|e| describe(&e)).collect(),
            ));
        }
        if one_by_one && let Err(first) = validator.validate(value) {
            return Err(ValidationFailure::Errors(vec![describe(&first)]));
        }
        Err(ValidationFailure::Unlisted)
    }

    /// The validator, if the value may be evaluated at all and here.
    fn admitted<T>(
        &self,
        value: &Value,
        meter: &Meter,
    ) -> Result<(&Validator, Estimate, bool), ValidationFailure<T>> {
        let (validator, costs, own) = match &self.form {
            Form::Usable {
                validator,
                costs,
                own,
            } => (validator, costs, *own),
            Form::Refused(why) => return Err(ValidationFailure::SchemaRefused(why.clone())),
        };
        let shape = Shape::of(value).ok_or(ValidationFailure::TooMuchWork)?;
        let estimate = costs
            .estimate(&shape)
            .ok_or(ValidationFailure::TooMuchWork)?;
        if estimate.fits > MAX_WORK && !own {
            return Err(ValidationFailure::TooMuchWork);
        }
        let all = estimate.fits.saturating_add(estimate.errors.unwrap_or(0));
        if !meter.try_spend(all) {
            return Err(ValidationFailure::Deferred);
        }
        Ok((validator, estimate, own || costs.tries_nothing))
    }
}

fn weight(graph: &Graph) -> usize {
    let parts = graph.parts.iter().map(|part| part.at.len() + 512);
    // Each pattern is compiled for both directions, and caches what it has matched.
    let patterns = 4 * graph.pattern_bytes + graph.patterns * PATTERN_CACHE_BYTES / 8;
    parts.sum::<usize>() + patterns
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match &self.form {
            Form::Usable { .. } => "usable",
            Form::Refused(_) => "refused",
        };
        f.debug_struct("Schema").field("form", &form).finish()
    }
}

/// The message of an error. Messages quote the wrong value; a large one is shortened.
pub fn short_message(error: &ValidationError<'_>) -> String {
    let mut text = Limited {
        text: String::new(),
        left: MAX_MESSAGE,
    };
    if write!(text, "{error}").is_err() {
        text.text.push('…');
    }
    text.text
}

/// Stops the formatting of a value that gets too long.
struct Limited {
    text: String,
    left: usize,
}

impl Write for Limited {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        match piece.char_indices().nth(self.left) {
            Some((cut, _)) => {
                self.text.push_str(&piece[..cut]);
                self.left = 0;
                Err(fmt::Error)
            }
            None => {
                self.left -= piece.chars().count();
                self.text.push_str(piece);
                Ok(())
            }
        }
    }
}
