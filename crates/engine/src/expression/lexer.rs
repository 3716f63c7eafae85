//! Splits characters into tokens.

use super::SyntaxError;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Literal(Value),
    Symbol(&'static str),
}

const SYMBOLS: [&str; 14] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "(", ")", "[", "]", ".",
];

pub(super) fn tokens(text: &str) -> Result<Vec<(Token, usize)>, SyntaxError> {
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        let start = at;
        if c.is_whitespace() {
            at += 1;
        } else if c.is_alphabetic() || c == '_' || c == '$' {
            while at < chars.len() && is_name(chars[at]) {
                at += 1;
            }
            found.push((keyword_or_name(chars[start..at].iter().collect()), start));
        } else if c.is_ascii_digit()
            || (c == '-' && chars.get(at + 1).is_some_and(char::is_ascii_digit))
        {
            at += 1;
            // Inside a path `.5` is never a number, so a dot counts only before another digit.
            while at < chars.len()
                && (chars[at].is_ascii_digit()
                    || (chars[at] == '.' && chars.get(at + 1).is_some_and(char::is_ascii_digit)))
            {
                at += 1;
            }
            let text: String = chars[start..at].iter().collect();
            let number = serde_json::from_str(&text)
                .map_err(|_| error(format!("{text} is not a number"), start))?;
            found.push((Token::Literal(number), start));
        } else if c == '"' || c == '\'' {
            let (value, end) = string(&chars, at)?;
            found.push((Token::Literal(Value::String(value)), start));
            at = end;
        } else {
            let rest: String = chars[at..chars.len().min(at + 2)].iter().collect();
            let symbol = SYMBOLS
                .into_iter()
                .find(|s| rest.starts_with(s))
                .ok_or_else(|| error(format!("unexpected {c:?}"), start))?;
            at += symbol.len();
            found.push((Token::Symbol(symbol), start));
        }
    }
    Ok(found)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$' || c == '-'
}

fn keyword_or_name(text: String) -> Token {
    match text.as_str() {
        "true" => Token::Literal(Value::Bool(true)),
        "false" => Token::Literal(Value::Bool(false)),
        "null" => Token::Literal(Value::Null),
        "in" => Token::Symbol("in"),
        _ => Token::Name(text),
    }
}

fn string(chars: &[char], start: usize) -> Result<(String, usize), SyntaxError> {
    let quote = chars[start];
    let mut value = String::new();
    let mut at = start + 1;
    while let Some(&c) = chars.get(at) {
        match c {
            _ if c == quote => return Ok((value, at + 1)),
            '\\' => {
                at += 1;
                value.push(match chars.get(at) {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some(&other) => other,
                    None => break,
                });
            }
            _ => value.push(c),
        }
        at += 1;
    }
    Err(error("text without closing quote".to_owned(), start))
}

pub(super) fn error(message: String, position: usize) -> SyntaxError {
    SyntaxError { message, position }
}
