//! Puts a check at the beginning of every `catch` of authors' code: what the sandbox limits is not theirs to catch
//! (Z-209). Lines stay where they are.

use oxc_allocator::Allocator;
use oxc_ast::ast::{BindingPattern, CatchClause};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType};

/// The function of `environment.js` that throws a broken limit again.
const CHECK: &str = "__tandemCaught";
/// The name of what was thrown where the author gave it none.
const THROWN: &str = "__tandemThrown";

/// A text that takes the place of another.
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

struct CatchClauses<'s> {
    source: &'s str,
    edits: Vec<Edit>,
}

/// The same code with the checks.
pub(crate) fn guard_catches(source: String) -> String {
    if !source.contains("catch") {
        return source;
    }
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, &source, SourceType::mjs()).parse();
    let mut clauses = CatchClauses {
        source: &source,
        edits: Vec::new(),
    };
    clauses.visit_program(&parsed.program);
    let mut edits = clauses.edits;
    edits.sort_by_key(|edit| edit.start);
    let mut guarded = source.clone();
    for edit in edits.iter().rev() {
        guarded.replace_range(edit.start..edit.end, &edit.text);
    }
    guarded
}

impl<'a> Visit<'a> for CatchClauses<'_> {
    fn visit_catch_clause(&mut self, clause: &CatchClause<'a>) {
        let open = clause.body.span.start as usize;
        let mut insert = |start: usize, end: usize, text: String| {
            self.edits.push(Edit { start, end, text });
        };
        match &clause.param {
            None => {
                insert(open, open, format!("({THROWN})"));
                insert(open + 1, open + 1, format!("{CHECK}({THROWN});"));
            }
            Some(param) => match &param.pattern {
                BindingPattern::BindingIdentifier(id) => {
                    insert(open + 1, open + 1, format!("{CHECK}({});", id.name));
                }
                pattern => {
                    let span = pattern.span();
                    let (start, end) = (span.start as usize, span.end as usize);
                    let fields = self.source.get(start..end).unwrap_or_default();
                    let check = format!("{CHECK}({THROWN});let {fields}={THROWN};");
                    insert(start, end, THROWN.to_owned());
                    insert(open + 1, open + 1, check);
                }
            },
        }
        walk::walk_catch_clause(self, clause);
    }
}
