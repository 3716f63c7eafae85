//! Parses tokens into a tree, by precedence: `||`, `&&`, comparison, `!`, path.

use super::lexer::{Token, error, tokens};
use super::{MAX_DEPTH, Node, Operator, Step, SyntaxError};
use serde_json::Value;

/// Maximum length of an expression, in characters.
const MAX_LENGTH: usize = 4096;

pub(super) fn parse(text: &str) -> Result<Node, SyntaxError> {
    if text.len() > MAX_LENGTH {
        return Err(error(
            format!("longer than {MAX_LENGTH} characters"),
            MAX_LENGTH,
        ));
    }
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
        end: text.chars().count(),
    };
    let node = parser.or()?;
    match parser.tokens.get(parser.at) {
        None => Ok(node),
        Some((_, position)) => Err(error("unexpected text".to_owned(), *position)),
    }
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    at: usize,
    depth: usize,
    end: usize,
}

impl Parser {
    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some((Token::Symbol(s), _)) if *s == symbol);
        self.at += usize::from(found);
        found
    }

    fn position(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |(_, p)| *p)
    }

    fn or(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.and()?;
        while self.take("||") {
            let right = self.and()?;
            left = Node::Binary(Operator::Or, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Node, SyntaxError> {
        let mut left = self.comparison()?;
        while self.take("&&") {
            let right = self.comparison()?;
            left = Node::Binary(Operator::And, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Node, SyntaxError> {
        const OPERATORS: [(&str, Operator); 7] = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
            ("in", Operator::In),
        ];
        let left = self.unary()?;
        for (symbol, operator) in OPERATORS {
            if self.take(symbol) {
                let right = self.unary()?;
                return Ok(Node::Binary(operator, Box::new(left), Box::new(right)));
            }
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Node, SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(error("nested too deeply".to_owned(), self.position()));
        }
        let node = if self.take("!") {
            Node::Not(Box::new(self.unary()?))
        } else if self.take("(") {
            let inner = self.or()?;
            if !self.take(")") {
                return Err(error(
                    "a closing parenthesis is missing".to_owned(),
                    self.position(),
                ));
            }
            inner
        } else {
            self.operand()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn operand(&mut self) -> Result<Node, SyntaxError> {
        let position = self.position();
        match self.tokens.get(self.at).cloned() {
            Some((Token::Literal(value), _)) => {
                self.at += 1;
                Ok(Node::Literal(value))
            }
            Some((Token::Name(name), _)) => {
                self.at += 1;
                self.path(name)
            }
            _ => Err(error("a value or a path is missing".to_owned(), position)),
        }
    }

    fn path(&mut self, root: String) -> Result<Node, SyntaxError> {
        let mut steps = vec![Step::Key(root)];
        loop {
            let position = self.position();
            if self.take(".") {
                let Some((Token::Name(name), _)) = self.tokens.get(self.at).cloned() else {
                    return Err(error(
                        "a name is missing after the dot".to_owned(),
                        position,
                    ));
                };
                self.at += 1;
                steps.push(Step::Key(name));
            } else if self.take("[") {
                let step = match self.tokens.get(self.at).cloned() {
                    Some((Token::Literal(Value::String(key)), _)) => Step::Key(key),
                    Some((Token::Literal(Value::Number(n)), _)) => n
                        .as_u64()
                        .and_then(|n| usize::try_from(n).ok())
                        .map(Step::Index)
                        .ok_or_else(|| error("an index is a whole number".to_owned(), position))?,
                    _ => return Err(error("a key or an index is missing".to_owned(), position)),
                };
                self.at += 1;
                if !self.take("]") {
                    return Err(error(
                        "a closing bracket is missing".to_owned(),
                        self.position(),
                    ));
                }
                steps.push(step);
            } else {
                return Ok(Node::Path(steps));
            }
        }
    }
}
