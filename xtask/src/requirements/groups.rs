//! The requirements there are: which chapters of the protocol, which numbers, on which page, and which of them this
//! version does not claim.

/// One generated page.
pub(crate) struct RequirementPage {
    pub(crate) path: &'static str,
    pub(crate) title: &'static str,
    pub(crate) groups: &'static [RequirementGroup],
}

/// Consecutive numbers about one subject.
pub(crate) struct RequirementGroup {
    pub(crate) heading: &'static str,
    /// What stands before the number: `R-0023-`, `Z-`.
    pub(crate) prefix: &'static str,
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) about: &'static str,
    pub(crate) not_claimed: &'static [NotClaimed],
}

/// Numbers of a group that need no test yet.
pub(crate) struct NotClaimed {
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// What they wait for.
    pub(crate) reason: &'static str,
}

/// The part of a claimed number that needs no test yet.
pub(crate) struct LaterPart {
    pub(crate) prefix: &'static str,
    pub(crate) number: u32,
    pub(crate) part: &'static str,
}

pub(crate) const REQUIREMENT_PAGES: [RequirementPage; 2] = [
    RequirementPage {
        path: "docs/requirements.md",
        title: "Requirements and their tests",
        groups: &AGENTS_AND_MEMORY,
    },
    RequirementPage {
        path: "docs/requirements-conversations.md",
        title: "Requirements of conversations and their tests",
        groups: &CONVERSATIONS,
    },
];

pub(crate) fn groups() -> impl Iterator<Item = &'static RequirementGroup> {
    REQUIREMENT_PAGES.iter().flat_map(|page| page.groups)
}

impl RequirementGroup {
    pub(crate) fn has(&self, prefix: &str, number: u32) -> bool {
        self.prefix == prefix && (self.first..=self.last).contains(&number)
    }

    pub(crate) fn claims(&self, number: u32) -> bool {
        let mut later = self.not_claimed.iter();
        !later.any(|numbers| (numbers.first..=numbers.last).contains(&number))
    }
}

const fn chapter(
    heading: &'static str,
    prefix: &'static str,
    last: u32,
    about: &'static str,
) -> RequirementGroup {
    RequirementGroup {
        heading,
        prefix,
        first: 1,
        last,
        about,
        not_claimed: &[],
    }
}

const AGENTS_AND_MEMORY: [RequirementGroup; 4] = [
    chapter(
        "R-0023",
        "R-0023-",
        28,
        "What agents say, and the mock agent of conformance workflows.",
    ),
    chapter(
        "R-0039",
        "R-0039-",
        30,
        "The confidence floor; memory across sub-runs and forks.",
    ),
    chapter(
        "R-0040",
        "R-0040-",
        18,
        "Causation across hosts. 5 and 6 are about serving MCP tools and about A2A, which this version does not do \
         and does not advertise; proved besides is what they will stand on: the one way requests leave and the one \
         way they come in.",
    ),
    chapter(
        "R-0044",
        "R-0044-",
        11,
        "What the question about a held decision is called.",
    ),
];

const fn section(
    heading: &'static str,
    first: u32,
    last: u32,
    about: &'static str,
    not_claimed: &'static [NotClaimed],
) -> RequirementGroup {
    RequirementGroup {
        heading,
        prefix: "Z-",
        first,
        last,
        about,
        not_claimed,
    }
}

const fn later(first: u32, last: u32, reason: &'static str) -> NotClaimed {
    NotClaimed {
        first,
        last,
        reason,
    }
}

const CONVERSATIONS: [RequirementGroup; 14] = [
    section(
        "1 Concepts",
        1,
        3,
        "Runs of flows, and agents without them.",
        &[],
    ),
    section("2 Agents", 4, 7, "Configuration and what code sees.", &[]),
    section(
        "3 Kernel",
        8,
        42,
        "How a message becomes a turn, and what a turn does.",
        &[],
    ),
    section(
        "4 Flows and effects",
        43,
        116,
        "What flows yield, and what happens with it.",
        &[],
    ),
    section(
        "5 Responses",
        117,
        136,
        "Hooks around models and texts.",
        &[],
    ),
    section("6 Router", 137, 142, "Choosing a flow.", &[]),
    section(
        "7 Admins",
        143,
        156,
        "Who may decide, and by which ways.",
        &[],
    ),
    section(
        "8 Schedules",
        157,
        182,
        "Turns that nobody sent a message for.",
        &[later(181, 181, "executors outside of the server")],
    ),
    section(
        "9 Durability",
        183,
        202,
        "Commits, timers, keys, sending, events.",
        &[],
    ),
    section(
        "10 Runs of flows",
        203,
        222,
        "The journal, the sandbox, versions of code, workflows.",
        &[],
    ),
    section(
        "11 Test seams",
        223,
        227,
        "What tests need of a server.",
        &[],
    ),
    section(
        "13 Optional additions",
        228,
        233,
        "Off unless configured.",
        &[later(233, 233, "erasing a user")],
    ),
    section(
        "14 What desks ask for",
        234,
        250,
        "Off unless configured.",
        &[],
    ),
    section(
        "15 Clarifications",
        251,
        266,
        "They settle doubts about the numbers above.",
        &[],
    ),
];

const fn part(number: u32, part: &'static str) -> LaterPart {
    LaterPart {
        prefix: "Z-",
        number,
        part,
    }
}

pub(crate) const LATER_PARTS: &[LaterPart] = &[
    part(42, "traits for files and vector search"),
    part(221, "tools in the mode `live-dry`"),
];
