//! The system prompt: a template with bounds, or a function of the author.
//!
//! Instructions and output of a rendering are bounded; intermediate values of an expression are not.
//! Templates therefore come from the agent's folder only, never from users: texts of users are
//! variables, which are not evaluated.

use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, UndefinedBehavior};
use serde_json::Value;
use std::io::{self, Write};

const MAX_TEMPLATE_BYTES: usize = 64 * 1024;
const MAX_PROMPT_BYTES: usize = 256 * 1024;
/// Instructions of one rendering.
const FUEL: u64 = 200_000;
const NAME: &str = "prompt";

#[derive(Debug)]
pub enum Prompt {
    Template(Box<PromptTemplate>),
    /// A function of the author.
    Function,
}

/// A template that compiles. Rendering is bounded in instructions and bytes.
#[derive(Debug)]
pub struct PromptTemplate {
    environment: Environment<'static>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error("the prompt has at most {MAX_TEMPLATE_BYTES} bytes")]
    TemplateTooLong,
    #[error("the rendered prompt has more than {MAX_PROMPT_BYTES} bytes")]
    OutputTooLong,
    #[error("rendering the prompt takes too many steps")]
    TooMuchWork,
    #[error("{0}")]
    Template(String),
}

impl PromptTemplate {
    pub fn compile(source: &str) -> Result<Self, PromptError> {
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(PromptError::TemplateTooLong);
        }
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL));
        // A user without a name must not make every turn fail.
        environment.set_undefined_behavior(UndefinedBehavior::Chainable);
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| described(&error))?;
        Ok(Self { environment })
    }

    /// Renders with the variables `user`, `session`, `state` and what `context` returned.
    pub fn render(&self, variables: &Value) -> Result<String, PromptError> {
        let template = self.environment.get_template(NAME);
        let template = template.expect("the template was added when it was compiled");
        let mut output = BoundedOutput::default();
        let variables = minijinja::Value::from(Serde(variables));
        let rendered = template
            .render_captured_to(variables, &mut output)
            .map(drop);
        match rendered {
            Err(_) if output.exceeded => Err(PromptError::OutputTooLong),
            Err(error) => Err(described(&error)),
            Ok(()) => Ok(String::from_utf8_lossy(&output.bytes).into_owned()),
        }
    }
}

fn described(error: &minijinja::Error) -> PromptError {
    if error.kind() == ErrorKind::OutOfFuel {
        return PromptError::TooMuchWork;
    }
    let detail = error.detail().map(|detail| format!(": {detail}"));
    let detail = detail.unwrap_or_default();
    let line = error.line().map(|line| format!("line {line}: "));
    let line = line.unwrap_or_default();
    PromptError::Template(format!("{line}{}{detail}", error.kind()))
}

/// Stops the rendering when the output gets too long.
#[derive(Default)]
struct BoundedOutput {
    bytes: Vec<u8>,
    exceeded: bool,
}

impl Write for BoundedOutput {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > MAX_PROMPT_BYTES {
            self.exceeded = true;
            return Err(io::Error::other("the prompt is too long"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
