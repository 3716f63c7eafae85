//! Project rules that the compiler does not check. Each rule is one file and reports complaints; a
//! complaint names the place and what to do.

mod dependencies;
mod error_pages;
mod glossary;
mod links;
mod purity;
mod requirements;
mod source;
pub(crate) mod tracked;
mod type_names;

use crate::Outcome;
use crate::process;
use tracked::Tracked;

/// What the rules found.
#[derive(Default)]
struct Findings {
    errors: Vec<String>,
    /// To be reported, but not an error.
    warnings: Vec<String>,
}

impl Findings {
    fn error(&mut self, place: &str, message: impl std::fmt::Display) {
        self.errors.push(format!("{place}: {message}"));
    }

    fn warn(&mut self, place: &str, message: impl std::fmt::Display) {
        self.warnings.push(format!("{place}: {message}"));
    }
}

pub(crate) fn tidy(_: &[String]) -> Outcome {
    let mut findings = Findings::default();
    let files = Tracked::read()?;
    dependencies::check(&process::metadata()?, &mut findings);
    purity::check(&files, &mut findings)?;
    source::check(&files, &mut findings);
    error_pages::check(&files, &mut findings);
    glossary::check(&files, &mut findings);
    links::check(&files, &mut findings);
    requirements::check(&files, &mut findings);
    type_names::check(&files, &mut findings);

    for warning in &findings.warnings {
        println!("note: {warning}");
    }
    for error in &findings.errors {
        println!("tidy: {error}");
    }
    match findings.errors.len() {
        0 => {
            println!("tidy: {} files in order", files.all.len());
            Ok(())
        }
        count => Err(format!("{count} complaints")),
    }
}
