//! One source file to JavaScript: checks its syntax, removes types, lists its imports and the bindings
//! that may be flows.
//!
//! A JavaScript file is kept as it is, but for the checks of `guard.rs`. A TypeScript file is transformed (enums, namespaces and parameter
//! properties become code) and printed with a source map.

use crate::guard::guard_catches;
use crate::positions::Positions;
use crate::source_set::ADDED_EXPORT;
use oxc_allocator::Allocator;
use oxc_ast::ast::{
    BindingPattern, Declaration, ExportDefaultDeclarationKind, Expression, Function, Program,
    Statement,
};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::{GetSpan, SourceType, Span};
use oxc_transformer::{TransformOptions, Transformer};
use std::path::{Path, PathBuf};

/// Something wrong at a place of a file. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) message: String,
    pub(crate) position: Option<(u32, u32)>,
}

#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) specifier: String,
    pub(crate) position: (u32, u32),
}

/// A top-level binding or default export whose value may be a flow.
#[derive(Debug)]
pub(crate) struct Binding {
    /// The name that the module exports it under.
    pub(crate) export: String,
    pub(crate) position: (u32, u32),
    /// A `function*` without `async` that is not exported. An exported one is found when it is evaluated.
    pub(crate) is_hidden_sync_generator: bool,
}

#[derive(Debug)]
pub(crate) struct Stripped {
    pub(crate) source: String,
    pub(crate) map: Option<String>,
    pub(crate) imports: Vec<Import>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) has_module_syntax: bool,
}

pub(crate) fn strip(path: &str, text: &str) -> Result<Stripped, Vec<Complaint>> {
    let is_typescript = [".ts", ".mts"].iter().any(|end| path.ends_with(end));
    let source_type = if is_typescript {
        SourceType::ts()
    } else {
        SourceType::mjs()
    };
    let positions = Positions::of(text);
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, text, source_type).parse();
    let complaints = |diagnostics: &[oxc_diagnostics::OxcDiagnostic]| {
        let complaint = |found: &oxc_diagnostics::OxcDiagnostic| Complaint {
            message: found.message.to_string(),
            position: found
                .labels
                .first()
                .map(|label| positions.at(label.offset() as usize)),
        };
        diagnostics.iter().map(complaint).collect::<Vec<_>>()
    };
    if !parsed.diagnostics.is_empty() || parsed.panicked {
        return Err(complaints(&parsed.diagnostics));
    }
    let mut program = parsed.program;
    let bindings = bindings(&program, &positions);
    let mut imports: Vec<Import> = parsed
        .module_record
        .dynamic_imports
        .iter()
        .filter_map(|import| literal(text, import.module_request, &positions))
        .collect();
    let semantic = SemanticBuilder::new()
        .with_check_syntax_error(true)
        .with_enum_eval(true)
        .build(&program);
    if !semantic.diagnostics.is_empty() {
        return Err(complaints(&semantic.diagnostics));
    }
    let (mut source, map) = if is_typescript {
        let scoping = semantic.semantic.into_scoping();
        let options = TransformOptions::default();
        let transformed = Transformer::new(&allocator, Path::new(path), &options)
            .build_with_scoping(scoping, &mut program);
        if !transformed.diagnostics.is_empty() {
            return Err(complaints(&transformed.diagnostics));
        }
        let printed = Codegen::new()
            .with_options(CodegenOptions {
                source_map_path: Some(PathBuf::from(path)),
                ..CodegenOptions::default()
            })
            .build(&program);
        let map = printed.map.map(|mut map| {
            // The file's text would double what is stored.
            map.set_source_contents(vec![None]);
            map.to_json_string()
        });
        (printed.code, map)
    } else {
        (text.to_owned(), None)
    };
    // After the transformation: imports that are only used as types are gone.
    imports.extend(static_imports(&program, &positions));
    for binding in &bindings {
        if let Some(name) = binding.export.strip_prefix(ADDED_EXPORT)
            && !binding.is_hidden_sync_generator
        {
            source.push_str(&format!("\nexport {{ {name} as {} }};", binding.export));
        }
    }
    Ok(Stripped {
        source: guard_catches(source),
        map,
        imports,
        bindings,
        has_module_syntax: parsed.module_record.has_module_syntax,
    })
}

fn static_imports(program: &Program<'_>, positions: &Positions) -> Vec<Import> {
    let sources = program.body.iter().filter_map(|statement| match statement {
        Statement::ImportDeclaration(import) => Some(&import.source),
        Statement::ExportFromDeclaration(export) => Some(&export.source),
        Statement::ExportAllDeclaration(export) => Some(&export.source),
        _ => None,
    });
    sources
        .map(|source| Import {
            specifier: source.value.to_string(),
            position: positions.at(source.span.start as usize),
        })
        .collect()
}

/// The specifier of `import('…')` when it is a plain string. Any other one cannot be resolved at run
/// time, because only what was found here is in the source set.
fn literal(text: &str, span: Span, positions: &Positions) -> Option<Import> {
    let raw = text.get(span.start as usize..span.end as usize)?;
    let quote = raw.chars().next().filter(|c| "'\"`".contains(*c))?;
    let inner = raw.get(1..raw.len() - 1)?;
    (raw.ends_with(quote) && !inner.contains(['\\', '$'])).then(|| Import {
        specifier: inner.to_owned(),
        position: positions.at(span.start as usize),
    })
}

fn bindings(program: &Program<'_>, positions: &Positions) -> Vec<Binding> {
    let mut found = Vec::new();
    for statement in &program.body {
        let (declaration, is_exported) = match statement {
            Statement::ExportDeclaration(export) => (Some(&export.declaration), true),
            Statement::ExportDefaultDeclaration(export) => {
                let start = match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                        function.span.start
                    }
                    _ => export.span.start,
                };
                found.push(Binding {
                    export: "default".to_owned(),
                    position: positions.at(start as usize),
                    is_hidden_sync_generator: false,
                });
                continue;
            }
            other => (other.as_declaration(), false),
        };
        match declaration {
            Some(Declaration::FunctionDeclaration(function)) => {
                let name = function.id.as_ref().map(|id| id.name.to_string());
                let kind = Candidate::of_function(function);
                add(
                    &mut found,
                    name,
                    function.span,
                    kind,
                    is_exported,
                    positions,
                );
            }
            Some(Declaration::VariableDeclaration(variables)) => {
                for variable in &variables.declarations {
                    let BindingPattern::BindingIdentifier(id) = &variable.id else {
                        continue;
                    };
                    let kind = variable.init.as_ref().map_or(Candidate::No, Candidate::of);
                    let name = Some(id.name.to_string());
                    add(
                        &mut found,
                        name,
                        variable.span(),
                        kind,
                        is_exported,
                        positions,
                    );
                }
            }
            _ => {}
        }
    }
    found
}

fn add(
    found: &mut Vec<Binding>,
    name: Option<String>,
    span: Span,
    kind: Candidate,
    is_exported: bool,
    positions: &Positions,
) {
    let Some(name) = name else { return };
    if !is_exported && kind == Candidate::No {
        return;
    }
    found.push(Binding {
        export: if is_exported {
            name
        } else {
            format!("{ADDED_EXPORT}{name}")
        },
        position: positions.at(span.start as usize),
        is_hidden_sync_generator: !is_exported && kind == Candidate::SyncGenerator,
    });
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Candidate {
    Flow,
    /// Takes `ctx`, so it was meant to be a flow.
    SyncGenerator,
    No,
}

impl Candidate {
    fn of(expression: &Expression<'_>) -> Self {
        match expression.get_inner_expression() {
            Expression::FunctionExpression(function) => Self::of_function(function),
            Expression::CallExpression(call) => match &call.callee {
                Expression::Identifier(callee) if callee.name == "defineFlow" => Self::Flow,
                _ => Self::No,
            },
            _ => Self::No,
        }
    }

    fn of_function(function: &Function<'_>) -> Self {
        let takes_ctx = function.params.items.first().is_some_and(|first| {
            matches!(&first.pattern, BindingPattern::BindingIdentifier(id) if id.name == "ctx")
        });
        match (function.generator, function.r#async) {
            (true, true) => Self::Flow,
            (true, false) if takes_ctx => Self::SyncGenerator,
            _ => Self::No,
        }
    }
}
