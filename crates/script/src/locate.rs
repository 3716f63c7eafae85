//! Where a part of an agent's configuration stands in the file of its author.

use crate::load::stem;
use crate::positions::Positions;
use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, BindingPattern, Declaration, Expression, ObjectPropertyKind, Program, Statement,
};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType};
use std::borrow::Cow;

const FLOW_FOLDER: &str = "flows/";

/// Line and column, counted from 1, of the value that a JSON pointer into the agent's configuration names, or of
/// the nearest value around it. In a flow file the pointer begins with `/flows/` and the id of the flow.
pub fn locate(file: &str, text: &str, pointer: &str) -> Option<(u32, u32)> {
    let is_json = file.ends_with(".json");
    // As an expression, JSON is JavaScript.
    let source = match is_json {
        true => Cow::Owned(format!("({text})")),
        false => Cow::Borrowed(text),
    };
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, &source, SourceType::ts()).parse();
    if parsed.panicked {
        return None;
    }
    let steps: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
    let (root, steps) = root(&parsed.program, file, &steps)?;
    let offset = descend(root, steps) as usize;
    let offset = offset.saturating_sub(usize::from(is_json));
    Some(Positions::of(text).at(offset))
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// The expression that the rest of the steps begins at.
fn root<'p, 'a, 's>(
    program: &'p Program<'a>,
    file: &str,
    steps: &'s [String],
) -> Option<(&'p Expression<'a>, &'s [String])> {
    if let (true, Some((id, rest))) = (file.starts_with(FLOW_FOLDER), flow_of(steps)) {
        let named = variable(program, id);
        let default = || default_export(program).filter(|_| stem(file) == id);
        return Some((named.or_else(default)?, rest));
    }
    let statement = program.body.first();
    let expression = match statement {
        Some(Statement::ExpressionStatement(only)) if file.ends_with(".json") => {
            Some(&only.expression)
        }
        _ => default_export(program),
    };
    Some((expression?, steps))
}

fn flow_of(steps: &[String]) -> Option<(&str, &[String])> {
    match steps {
        [flows, id, rest @ ..] if flows == "flows" => Some((id, rest)),
        _ => None,
    }
}

fn default_export<'p, 'a>(program: &'p Program<'a>) -> Option<&'p Expression<'a>> {
    let exported = program.body.iter().find_map(|statement| match statement {
        Statement::ExportDefaultDeclaration(export) => export.declaration.as_expression(),
        _ => None,
    })?;
    // `export default agent;`
    match exported.get_inner_expression() {
        Expression::Identifier(name) => variable(program, &name.name).or(Some(exported)),
        _ => Some(exported),
    }
}

/// The value of a variable of the module.
fn variable<'p, 'a>(program: &'p Program<'a>, name: &str) -> Option<&'p Expression<'a>> {
    program.body.iter().find_map(|statement| {
        let declaration = match statement {
            Statement::ExportDeclaration(export) => Some(&export.declaration),
            other => other.as_declaration(),
        };
        let Some(Declaration::VariableDeclaration(variables)) = declaration else {
            return None;
        };
        let mut variables = variables.declarations.iter();
        let found = variables.find(
            |one| matches!(&one.id, BindingPattern::BindingIdentifier(id) if id.name == name),
        );
        found.and_then(|one| one.init.as_ref())
    })
}

/// The offset of the last step that exists.
fn descend(root: &Expression<'_>, steps: &[String]) -> u32 {
    let mut at = root.span().start;
    let mut current = root;
    for step in steps {
        let inner = match object_of(current) {
            Expression::ObjectExpression(object) => {
                object
                    .properties
                    .iter()
                    .find_map(|property| match property {
                        ObjectPropertyKind::ObjectProperty(property)
                            if property.key.static_name().as_deref() == Some(step.as_str()) =>
                        {
                            Some((property.span.start, &property.value))
                        }
                        _ => None,
                    })
            }
            Expression::ArrayExpression(array) => {
                let index: Option<usize> = step.parse().ok();
                let element = index.and_then(|index| array.elements.get(index));
                let element = element.and_then(|element| element.as_expression());
                element.map(|element| (element.span().start, element))
            }
            _ => None,
        };
        let Some((start, value)) = inner else { break };
        (at, current) = (start, value);
    }
    at
}

/// The object of `createAgent({ … })` and its like; any other expression as it is.
fn object_of<'p, 'a>(expression: &'p Expression<'a>) -> &'p Expression<'a> {
    let inner = expression.get_inner_expression();
    let Expression::CallExpression(call) = inner else {
        return inner;
    };
    let first = call.arguments.first().and_then(Argument::as_expression);
    first.map_or(inner, Expression::get_inner_expression)
}
