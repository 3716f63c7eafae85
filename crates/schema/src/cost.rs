//! The cost of applying a schema, for a value at each depth of an instance.
//!
//! For every part of the schema and every depth below the value it is applied to, this module
//! computes the most work that a single value at that depth can cause, from the depth before it.
//! References are expanded as often as they are used, because the validator evaluates them as
//! often. The sums saturate: an exponential schema gets a very large cost, and the estimate stays
//! fast.

use crate::graph::{Graph, InPlace, Part};
use crate::limits::{
    CHECKED_LEVELS, MAX_CHAIN, MAX_ERROR_WORK, MAX_INSTANCE_DEPTH, MAX_STACK, MAX_VALUE_WORK,
    MAX_WORK,
};
use crate::measure::Shape;
use crate::refusal::SchemaRefusal;

/// Work for a value, for a byte, and for everything below. Then the number of schemas applied
/// inside each other down to this depth.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    value: u64,
    byte: u64,
    below: u64,
    stack: u64,
}

impl Work {
    fn plus(self, other: Self) -> Self {
        Self {
            value: self.value.saturating_add(other.value),
            byte: self.byte.saturating_add(other.byte),
            below: self.below.saturating_add(other.below),
            stack: self.stack.max(other.stack),
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            value: self.value.max(other.value),
            byte: self.byte.max(other.byte),
            below: self.below.max(other.below),
            stack: self.stack.max(other.stack),
        }
    }

    fn deeper(self) -> Self {
        let deeper = if self.stack == 0 { 0 } else { self.stack + 1 };
        Self {
            stack: deeper,
            ..self
        }
    }

    fn is_nothing(self) -> bool {
        self.value == 0 && self.byte == 0 && self.below == 0
    }
}

/// Work at one depth, if the value the part is applied to is an object, or an array. A value is
/// never both, so alternatives for objects and for arrays do not add up.
#[derive(Debug, Clone, Copy, Default)]
struct ByKind {
    object: Work,
    array: Work,
}

impl ByKind {
    fn plus(self, other: Self) -> Self {
        Self {
            object: self.object.plus(other.object),
            array: self.array.plus(other.array),
        }
    }

    fn either(self) -> Work {
        self.object.max(self.array)
    }
}

/// What the validator does with a part.
#[derive(Debug, Clone, Copy, Default)]
struct Modes {
    /// Whether a value matches.
    fits: ByKind,
    /// Which children were evaluated, for `unevaluatedProperties` and `unevaluatedItems`.
    marks: ByKind,
    /// All errors of a value that does not match.
    errors: ByKind,
}

/// The work of a whole schema by depth.
#[derive(Debug)]
pub(crate) struct Costs {
    fits: Vec<Work>,
    errors: Vec<Work>,
    /// Whether nothing is applied below the last listed depth.
    ends: bool,
    /// Errors are found without trying alternatives first.
    pub(crate) tries_nothing: bool,
}

/// Work of one evaluation.
pub(crate) struct Estimate {
    pub(crate) fits: u64,
    /// Absent when the errors are too many to be collected.
    pub(crate) errors: Option<u64>,
}

impl Costs {
    pub(crate) fn of(graph: &Graph) -> Result<Self, SchemaRefusal> {
        let order = in_place_order(&graph.parts)?;
        let mut costs = Self {
            fits: Vec::new(),
            errors: Vec::new(),
            ends: false,
            tries_nothing: graph.parts.iter().all(|part| {
                !part.unevaluated && part.in_place.iter().all(|(_, how)| *how == InPlace::Plain)
            }),
        };
        let mut above = vec![Modes::default(); graph.parts.len()];
        for depth in 0..MAX_INSTANCE_DEPTH {
            let mut here = vec![Modes::default(); graph.parts.len()];
            for index in &order {
                here[*index] = apply(&graph.parts[*index], depth, &here, &above);
            }
            let nothing = |m: &Modes| {
                [m.fits, m.marks, m.errors]
                    .iter()
                    .all(|by| by.either().is_nothing())
            };
            if here.iter().all(nothing) {
                costs.ends = true;
                break;
            }
            costs.fits.push(here[0].fits.either());
            costs.errors.push(here[0].errors.either());
            above = here;
        }
        costs.check()?;
        Ok(costs)
    }

    fn check(&self) -> Result<(), SchemaRefusal> {
        let levels = if self.ends {
            self.fits.len()
        } else {
            CHECKED_LEVELS
        };
        let worst = self.fits.iter().take(levels).map(|work| work.value).max();
        if worst.unwrap_or(0) > MAX_VALUE_WORK {
            let message = "checking a single value would take too much work: combinators or \
                           references are nested so that the work multiplies; use fewer \
                           alternatives inside each other";
            return Err(SchemaRefusal::new("", message));
        }
        Ok(())
    }

    /// The work for an instance of this shape. `None` when it is nested too deep for the schema.
    pub(crate) fn estimate(&self, shape: &Shape) -> Option<Estimate> {
        if shape.levels > self.fits.len() && !self.ends {
            return None;
        }
        let deepest = shape.levels.min(self.fits.len());
        let stack = self.errors[..deepest].iter().chain(&self.fits[..deepest]);
        if stack.map(|work| work.stack).max().unwrap_or(0) > MAX_STACK {
            return None;
        }
        let fits = sum(&self.fits, shape);
        let errors = sum(&self.errors, shape);
        let all = fits.values.saturating_add(fits.bytes);
        let collected = errors.values.saturating_add(errors.bytes);
        let few = errors.values <= MAX_ERROR_WORK && collected <= MAX_WORK;
        Some(Estimate {
            fits: all,
            errors: few.then_some(collected),
        })
    }
}

struct Sum {
    values: u64,
    bytes: u64,
}

fn sum(costs: &[Work], shape: &Shape) -> Sum {
    let mut sum = Sum {
        values: 0,
        bytes: 0,
    };
    let mut below = 0_u64;
    for depth in 0..shape.levels {
        let work = costs.get(depth).copied().unwrap_or_default();
        let (value, byte) = (
            work.value.saturating_add(below),
            work.byte.saturating_add(below / 8),
        );
        let values = shape.values[depth].saturating_mul(value);
        sum.values = sum.values.saturating_add(values);
        let bytes = shape.bytes[depth].saturating_mul(byte);
        sum.bytes = sum.bytes.saturating_add(bytes);
        below = below.saturating_add(work.below);
    }
    sum
}

/// The work of one part at `depth`, computed from the parts it applies: `here` for parts applied in
/// place at the same depth, `above` for parts applied to children at one depth less.
fn apply(part: &Part, depth: usize, here: &[Modes], above: &[Modes]) -> Modes {
    let mut modes = Modes::default();
    if depth == 0 {
        let own = Work {
            value: part.value_work,
            byte: part.text_work,
            below: part.below_work,
            stack: 1,
        };
        let own = ByKind {
            object: own,
            array: own,
        };
        modes = Modes {
            fits: own,
            marks: own,
            errors: own,
        };
    } else {
        let fits = children(part, depth, |child| above[child].fits.either());
        modes.fits = fits;
        modes.marks = fits;
        modes.errors = children(part, depth, |child| above[child].errors.either());
    }
    for (target, how) in &part.in_place {
        let target = here[*target];
        let (fits, marks) = (deeper(target.fits), deeper(target.marks));
        modes.fits = modes.fits.plus(fits);
        modes.marks = modes.marks.plus(fits).plus(marks);
        modes.errors = modes.errors.plus(deeper(target.errors));
        if *how == InPlace::Tried {
            modes.errors = modes.errors.plus(fits);
        }
    }
    if part.unevaluated {
        modes.fits = modes.fits.plus(deeper(modes.marks));
        modes.errors = modes.errors.plus(deeper(modes.marks));
    }
    modes
}

fn deeper(by: ByKind) -> ByKind {
    ByKind {
        object: by.object.deeper(),
        array: by.array.deeper(),
    }
}

/// The work at a depth below the value, through its children.
fn children(part: &Part, depth: usize, work: impl Fn(usize) -> Work) -> ByKind {
    let most = |parts: &[usize]| {
        let works = parts.iter().map(|child| work(*child));
        works.fold(Work::default(), Work::max)
    };
    let all = |parts: &[usize]| {
        let works = parts.iter().map(|child| work(*child));
        works.fold(Work::default(), Work::plus)
    };
    let mut object = most(&part.named).plus(all(&part.members)).deeper();
    if depth == 1 {
        object.byte = object.byte.saturating_add(part.name_work);
    }
    ByKind {
        object,
        array: most(&part.placed).plus(all(&part.items)).deeper(),
    }
}

/// Orders parts so that each comes after those it applies in place. No such order exists if a part
/// applies itself to the same value.
fn in_place_order(parts: &[Part]) -> Result<Vec<usize>, SchemaRefusal> {
    let mut visit = Visit {
        parts,
        marks: vec![Mark::New; parts.len()],
        order: Vec::with_capacity(parts.len()),
    };
    for index in 0..parts.len() {
        visit.part(index, 0)?;
    }
    Ok(visit.order)
}

#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    Open,
    Done,
}

struct Visit<'a> {
    parts: &'a [Part],
    marks: Vec<Mark>,
    order: Vec<usize>,
}

impl Visit<'_> {
    fn part(&mut self, index: usize, chain: usize) -> Result<(), SchemaRefusal> {
        let part = &self.parts[index];
        match self.marks[index] {
            Mark::Done => return Ok(()),
            Mark::New => {}
            Mark::Open => {
                let message = "the schema refers to itself without going down into the value; a \
                               recursive reference belongs under \"properties\" or \"items\"";
                return Err(SchemaRefusal::new(&part.at, message));
            }
        }
        if chain >= MAX_CHAIN {
            let message = format!(
                "more than {MAX_CHAIN} schemas apply to the same value inside each other; use fewer \
                 references and combinators"
            );
            return Err(SchemaRefusal::new(&part.at, message));
        }
        self.marks[index] = Mark::Open;
        for (target, _) in &part.in_place {
            self.part(*target, chain + 1)?;
        }
        self.marks[index] = Mark::Done;
        self.order.push(index);
        Ok(())
    }
}
