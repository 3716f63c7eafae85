//! The small expression language of edges, input bindings and loops. Deterministic and free of
//! side effects: paths into recorded values, literals, comparisons, `&& || ! in`, parentheses; no
//! calls, no clock. An unknown path is `null`; an ordered comparison of unlike types is false.

mod eval;
mod lexer;
mod parser;

fn below<'a>(node: &'a Node, root: &str, places: &mut Vec<Vec<&'a str>>) {
    match node {
        Node::Literal(_) => {}
        Node::Path(steps) => match steps.as_slice() {
            [Step::Key(first), rest @ ..] if first == root => {
                let names = rest.iter().map_while(|step| match step {
                    Step::Key(name) => Some(name.as_str()),
                    Step::Index(_) => None,
                });
                places.push(names.collect());
            }
            _ => {}
        },
        Node::Not(inner) => below(inner, root, places),
        Node::Binary(_, left, right) => {
            below(left, root, places);
            below(right, root, places);
        }
    }
}

fn roots<'a>(node: &'a Node, found: &mut Vec<&'a str>) {
    match node {
        Node::Literal(_) => {}
        Node::Path(steps) => {
            if let Some(Step::Key(first)) = steps.first() {
                found.push(first);
            }
        }
        Node::Not(inner) => roots(inner, found),
        Node::Binary(_, left, right) => {
            roots(left, found);
            roots(right, found);
        }
    }
}

#[cfg(test)]
mod tests;

use serde_json::Value;
use std::borrow::Cow;
use tandem_schema::Meter;

pub(crate) use eval::{contains, truthy};

/// Maximum number of nested operators; keeps the recursion of the evaluation within the stack.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expression(Node);

#[derive(Debug, Clone, PartialEq)]
enum Node {
    Literal(Value),
    Path(Vec<Step>),
    Not(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} at character {position}")]
pub(crate) struct SyntaxError {
    message: String,
    position: usize,
}

/// What the roots of a path mean. `None` stands for null.
pub(crate) trait Scope {
    fn root(&self, name: &str) -> Option<Value>;

    /// The work of putting a root together.
    fn root_cost(&self, _name: &str) -> u64 {
        0
    }

    /// A value below a root, found where it is kept: the whole root is not copied for it.
    fn locate(&self, _root: &str, _path: &[Step]) -> ValueLocation<'_> {
        ValueLocation::NotStored
    }
}

/// Where a value below a root is.
pub(crate) enum ValueLocation<'a> {
    /// The value after this number of steps.
    Found(&'a Value, usize),
    Missing,
    /// The root has to be built first.
    NotStored,
}

impl Expression {
    pub(crate) fn parse(text: &str) -> Result<Self, SyntaxError> {
        parser::parse(text).map(Self)
    }

    /// The names read directly below `root`; `None` among them stands for the whole root.
    pub(crate) fn read_below<'a>(&'a self, root: &str) -> Vec<Option<&'a str>> {
        let places = self.places_below(root).into_iter();
        places.map(|names| names.first().copied()).collect()
    }

    /// The paths read below `root`, each as far as it consists of names.
    pub(crate) fn places_below<'a>(&'a self, root: &str) -> Vec<Vec<&'a str>> {
        let mut places = Vec::new();
        below(&self.0, root, &mut places);
        places
    }

    /// The root names of all its paths.
    pub(crate) fn roots(&self) -> Vec<&str> {
        let mut found = Vec::new();
        roots(&self.0, &mut found);
        found
    }

    /// Its value, where it is kept if possible. Charged as far as values are looked at; `null` when
    /// that does not fit.
    pub(crate) fn evaluate<'a>(&'a self, scope: &'a dyn Scope, meter: &Meter) -> Cow<'a, Value> {
        eval::evaluate(&self.0, scope, meter)
    }
}
