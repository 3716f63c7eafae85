//! The table of results.

pub(crate) enum Target {
    Below(f64, &'static str),
    AtLeast(f64, &'static str),
    /// 1 when the condition holds.
    Exactly(&'static str),
}

#[derive(Default)]
pub(crate) struct Report {
    notes: Vec<String>,
    rows: Vec<Row>,
}

pub(crate) struct Row {
    name: String,
    measured: String,
    target: String,
    verdict: &'static str,
}

impl Report {
    pub(crate) fn note(&mut self, note: String) {
        println!("{note}");
        self.notes.push(note);
    }

    pub(crate) fn row(&mut self, name: impl Into<String>, measured: String) -> &mut Row {
        self.rows.push(Row {
            name: name.into(),
            measured,
            target: String::new(),
            verdict: "",
        });
        self.rows.last_mut().expect("it was just pushed")
    }

    pub(crate) fn print(&self) {
        println!();
        for row in &self.rows {
            let line = format!(
                "{:<36} {:>18}   {:<40} {}",
                row.name, row.measured, row.target, row.verdict
            );
            println!("{}", line.trim_end());
        }
        let count = |verdict| {
            self.rows
                .iter()
                .filter(|row| row.verdict == verdict)
                .count()
        };
        println!("\n{} targets met, {} missed", count("PASS"), count("MISS"));
    }
}

impl Row {
    pub(crate) fn check(&mut self, target: Target, value: f64) {
        let (text, met) = match target {
            Target::Below(limit, unit) => (
                format!("{value:.2} of at most {limit} {unit}"),
                value < limit,
            ),
            Target::AtLeast(limit, unit) => (
                format!("{value:.2} of at least {limit} {unit}"),
                value >= limit,
            ),
            Target::Exactly(what) => (what.to_owned(), value == 1.0),
        };
        self.target = text;
        self.verdict = if met { "PASS" } else { "MISS" };
    }
}

pub(crate) fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}
