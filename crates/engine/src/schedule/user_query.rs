//! Filters of users for campaigns: comparisons of fields of their profiles, joined by `and`, `or`, `not`.
//!
//! ```text
//! tags has "vip" and not preferences.newsletter = false
//! lastActiveAt >= "2031-01-01T00:00:00Z" or displayName = "Ada"
//! ```
//!
//! Never a query of the store: every user of the agent is looked at. Bounds: length and nesting of the text.

use serde_json::{Value, json};
use std::cmp::Ordering;
use tandem_record::Timestamp;
use tandem_record::conversation::ChatUser;

const MAX_BYTES: usize = 2_000;
const MAX_DEPTH: usize = 32;
const FIELDS: [&str; 5] = [
    "externalUserId",
    "displayName",
    "createdAt",
    "lastActiveAt",
    "language",
];
const PREFERENCES: &str = "preferences.";

/// A filter that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct UserQuery(Condition);

/// What a filter may look at.
pub struct UserFacts<'a> {
    pub profile: &'a ChatUser,
    pub created_at: Timestamp,
    pub last_active_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
enum Condition {
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Not(Box<Self>),
    HasTag(String),
    Compare {
        field: String,
        operator: Operator,
        value: Value,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Value(Value),
    Operator(Operator),
    Open,
    Close,
}

impl UserQuery {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("has at most {MAX_BYTES} bytes"));
        }
        let mut reader = Reader {
            tokens: tokens(text)?,
            at: 0,
            depth: 0,
        };
        let condition = reader.either()?;
        match reader.peek() {
            None => Ok(Self(condition)),
            Some(token) => Err(format!("ends too late: {token:?} follows the filter")),
        }
    }

    pub fn matches(&self, user: &UserFacts<'_>) -> bool {
        self.0.holds(user)
    }
}

impl Condition {
    fn holds(&self, user: &UserFacts<'_>) -> bool {
        match self {
            Self::And(a, b) => a.holds(user) && b.holds(user),
            Self::Or(a, b) => a.holds(user) || b.holds(user),
            Self::Not(inner) => !inner.holds(user),
            Self::HasTag(tag) => user.profile.tags.contains(tag),
            Self::Compare {
                field,
                operator,
                value,
            } => operator.holds(&field_of(user, field), value),
        }
    }
}

fn field_of(user: &UserFacts<'_>, field: &str) -> Value {
    let profile = user.profile;
    match field {
        "externalUserId" => json!(profile.external_user_id),
        "displayName" => json!(profile.display_name),
        "createdAt" => json!(user.created_at.rfc3339()),
        "lastActiveAt" => json!(user.last_active_at.rfc3339()),
        "language" => profile.preferences["language"].clone(),
        other => {
            let name = other.strip_prefix(PREFERENCES).unwrap_or_default();
            profile.preferences.get(name).cloned().unwrap_or_default()
        }
    }
}

impl Operator {
    fn holds(self, found: &Value, wanted: &Value) -> bool {
        let order = match (found, wanted) {
            (Value::Number(a), Value::Number(b)) => {
                a.as_f64().and_then(|a| a.partial_cmp(&b.as_f64()?))
            }
            (Value::String(a), Value::String(b)) => Some(order_of_texts(a, b)),
            (a, b) if a == b => Some(Ordering::Equal),
            _ => None,
        };
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

/// Moments are compared as moments.
fn order_of_texts(a: &str, b: &str) -> Ordering {
    let moment = |text: &str| text.parse::<jiff::Timestamp>().ok();
    match (moment(a), moment(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Reader {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Some(Token::Word(found)) if found == word);
        self.at += usize::from(is_it);
        is_it
    }

    fn either(&mut self) -> Result<Condition, String> {
        let mut condition = self.both()?;
        while self.takes_word("or") {
            condition = Condition::Or(Box::new(condition), Box::new(self.both()?));
        }
        Ok(condition)
    }

    fn both(&mut self) -> Result<Condition, String> {
        let mut condition = self.negated()?;
        while self.takes_word("and") {
            condition = Condition::And(Box::new(condition), Box::new(self.negated()?));
        }
        Ok(condition)
    }

    fn negated(&mut self) -> Result<Condition, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("is nested deeper than {MAX_DEPTH}"));
        }
        let condition = if self.takes_word("not") {
            Condition::Not(Box::new(self.negated()?))
        } else if self.peek() == Some(&Token::Open) {
            self.at += 1;
            let inner = self.either()?;
            if self.take() != Some(Token::Close) {
                return Err("lacks a )".to_owned());
            }
            inner
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(condition)
    }

    fn comparison(&mut self) -> Result<Condition, String> {
        let Some(Token::Word(field)) = self.take() else {
            return Err("lacks the name of a field".to_owned());
        };
        if field == "tags" {
            return match (self.takes_word("has"), self.take()) {
                (true, Some(Token::Value(Value::String(tag)))) => Ok(Condition::HasTag(tag)),
                _ => Err("write tags has \"name\"".to_owned()),
            };
        }
        let is_preference = field.len() > PREFERENCES.len() && field.starts_with(PREFERENCES);
        if !FIELDS.contains(&field.as_str()) && !is_preference {
            let fields = FIELDS.join(", ");
            return Err(format!(
                "there is no field {field:?}; fields are tags, {fields} and preferences.NAME"
            ));
        }
        match (self.take(), self.take()) {
            (Some(Token::Operator(operator)), Some(Token::Value(value))) => {
                Ok(Condition::Compare {
                    field,
                    operator,
                    value,
                })
            }
            _ => Err(format!(
                "compare {field} with =, !=, <, <=, > or >= and a value"
            )),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '"' | '\'' => quoted(rest, first)?,
            '=' => (Token::Operator(Operator::Equal), 1),
            '!' | '<' | '>' => operator(rest)?,
            c if c.is_ascii_digit() || c == '-' => number(rest)?,
            c if c.is_ascii_alphabetic() => word(rest),
            other => return Err(format!("has an unexpected {other:?}")),
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn quoted(rest: &str, quote: char) -> Result<(Token, usize), String> {
    let end = rest[1..].find(quote);
    let end = end.ok_or("has a text without an end")?;
    let text = rest[1..=end].to_owned();
    Ok((Token::Value(Value::String(text)), end + 2))
}

fn operator(rest: &str) -> Result<(Token, usize), String> {
    let known = [
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
    ];
    let found = known.iter().find(|(text, _)| rest.starts_with(text));
    let (text, operator) = found.ok_or("has an unexpected !")?;
    Ok((Token::Operator(*operator), text.len()))
}

fn number(rest: &str) -> Result<(Token, usize), String> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '-' | '.');
    let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let value = rest[..length].parse::<serde_json::Number>();
    let value = value.map_err(|_| format!("{:?} is no number", &rest[..length]))?;
    Ok((Token::Value(Value::Number(value)), length))
}

fn word(rest: &str) -> (Token, usize) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    let token = match &rest[..length] {
        "true" => Token::Value(Value::Bool(true)),
        "false" => Token::Value(Value::Bool(false)),
        "null" => Token::Value(Value::Null),
        word => Token::Word(word.to_owned()),
    };
    (token, length)
}
