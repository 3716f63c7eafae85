use super::groups::REQUIREMENT_PAGES;
use super::run::{TestResult, parse_rust_result, parse_script_result};
use super::rust::{Binary, places};
use super::*;

/// Numbers spelled so that this file cites none by itself: only `crates` and `tests` are read, but
/// a reader searching for a number should not end up here.
fn number(text: &str) -> String {
    text.replace('§', "R-00")
}

fn found(map: &Map) -> Vec<String> {
    let tests = map.tests.iter();
    tests
        .flat_map(|(requirement, proofs)| {
            let describe = |p: &Proof| match &p.part {
                Some(part) => format!("{requirement} {} / {part}", p.test),
                None => format!("{requirement} {}", p.test),
            };
            proofs.iter().map(describe).collect::<Vec<_>>()
        })
        .collect()
}

fn strays(map: &Map) -> Vec<String> {
    let strays = map.strays.iter();
    strays
        .map(|stray| format!("{} {}", stray.place, stray.requirement))
        .collect()
}

#[test]
fn numbers_are_found_in_text() {
    let text = number("// §23-1, §23-28: and (§44-3). XR-0023-9 R-23-1 R-0023- R-0023-x");
    let found: Vec<String> = cited(&text).iter().map(ToString::to_string).collect();
    let expected = ["§23-1", "§23-28", "§44-3"].map(number);
    assert_eq!(found, expected);
    let text = "(Z-7) Z-12, AZ-3 A-Z-4 Z- Z-x Z-13…";
    let found: Vec<String> = cited(text).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["Z-7", "Z-12", "Z-13"]);
    let known: Vec<bool> = [
        "§23-28", "§23-29", "§23-0", "§44-11", "§99-1", "Z-1", "Z-0", "Z-999",
    ]
    .iter()
    .flat_map(|text| cited(&number(text)))
    .map(|r| r.exists())
    .collect();
    assert_eq!(known, [true, false, false, true, false, true, false, false]);
}

#[test]
fn number_may_be_left_for_a_later_version() {
    let claimed = |text| cited(text)[0].is_claimed();
    assert!(claimed("Z-86") && claimed("Z-112"));
    assert!(!claimed("Z-233") && !claimed("Z-999"));
    // It may be cited before it is claimed, in full or in part.
    let mut map = Map::default();
    let text = "// Z-233 (half: what is kept)\n#[test]\nfn t() {}\n";
    rust::scan("crates/a/src/b.rs", text, &mut map);
    let faults = map.faults().into_iter().map(|(_, text)| text);
    assert!(faults.clone().any(|fault| fault == "no test cites Z-86"));
    assert!(!faults.clone().any(|fault| fault.contains("Z-233")));
    let page = written(&map, "docs/requirements-conversations.md");
    assert!(page.contains("- Z-233: erasing a user\n"), "{page}");
    assert!(!page.contains("what is kept"), "{page}");
}

#[test]
fn code_may_name_the_numbers_it_is_about() {
    let mut map = Map::default();
    rust::scan(
        "crates/a/src/b.rs",
        "//! Z-1\n\n/// Z-2\nfn f() {}\n",
        &mut map,
    );
    assert!(map.strays.is_empty() && map.tests.is_empty());
}

#[test]
fn part_may_go_on_in_the_next_line_of_a_comment() {
    let text = "/// Z-86 (half: one thing), Z-112 (half: a thing\n/// that is long), Z-87\n/// (half: more)\n\
                #[test]\nfn t() {\n    // Z-88 (half: inside\n    // of it)\n    let x = \"Z-89\";\n}\n";
    let mut map = Map::default();
    rust::scan("crates/a/src/b.rs", text, &mut map);
    let of_test = |text: &str| text.replacen(' ', " crates/a/src/b.rs::t", 1);
    let expected = [
        "Z-86  / one thing",
        "Z-87  / more",
        "Z-88  / inside of it",
        "Z-89 ",
        "Z-112  / a thing that is long",
    ];
    assert_eq!(found(&map), expected.map(of_test));
    assert!(map.unfinished.is_empty());
}

#[test]
fn part_without_an_end_is_a_fault() {
    let mut map = Map::default();
    let text = "/// Z-86 (half: one thing\n#[test]\nfn t() {}\n";
    rust::scan("crates/a/src/b.rs", text, &mut map);
    let label = "check(\"Z-112 (half: a thing: is done\")\n";
    python::scan("tests/x/a.py", label, &mut map);
    let faults = map.faults();
    let has = |place: &str, text: &str| faults.contains(&(place.to_owned(), text.to_owned()));
    let text = "names a part of Z-86 without a closing bracket";
    assert!(has("crates/a/src/b.rs::t", text), "{faults:?}");
    let text = "names a part of Z-112 without a closing bracket";
    assert!(faults.iter().any(|(_, fault)| fault == text), "{faults:?}");
}

/// The page without results.
fn written(map: &Map, path: &str) -> String {
    let mut pages = REQUIREMENT_PAGES.iter();
    let page = pages.find(|page| page.path == path).expect("a page");
    page::write(page, map, &Default::default(), "2026-01-02")
}

#[test]
fn rust_test_cites_in_its_comment_or_body() {
    let text = number(
        r##"//! Of §23-9 in general.
// §23-1
#[test]
#[ignore]
fn first() {
    // §23-2
    if true {
        let x = "§23-3";
    }
}

fn helper() {
    // §23-4
}

#[cfg(test)]
mod tests {
    /// §23-5
    #[tokio::test(flavor = "x")]
    async fn second() {
        // §23-2
    }
}

#[test]
fn third() {}
// §23-6
"##,
    );
    let mut map = Map::default();
    rust::scan("crates/a/src/b.rs", &text, &mut map);
    let expected = [
        "§23-1 crates/a/src/b.rs::first",
        "§23-2 crates/a/src/b.rs::first",
        "§23-2 crates/a/src/b.rs::second",
        "§23-3 crates/a/src/b.rs::first",
        "§23-5 crates/a/src/b.rs::second",
    ];
    assert_eq!(found(&map), expected.map(number));
    let expected = [
        "crates/a/src/b.rs:1 §23-9",
        "crates/a/src/b.rs:13 §23-4",
        "crates/a/src/b.rs:27 §23-6",
    ];
    assert_eq!(strays(&map), expected.map(number));
    let second = Test::Rust {
        file: "crates/a/src/b.rs".to_owned(),
        name: "tests::second".to_owned(),
    };
    let mut proofs = map.tests.values().flatten();
    assert!(proofs.any(|proof| proof.test == second));
}

#[test]
fn tests_are_found_in_the_binary_they_are_compiled_into() {
    let unit = |package: &str, name: &str| (package.to_owned(), Binary::Unit, name.to_owned());
    let beside = |package: &str, target: &str, name: &str| {
        let binary = Binary::Integration(target.to_owned());
        (package.to_owned(), binary, name.to_owned())
    };
    let table = [
        (
            "crates/a/src/b/mod.rs",
            "tests::t",
            vec![unit("crates/a", "b::tests::t")],
        ),
        ("crates/a/src/lib.rs", "t", vec![unit("crates/a", "t")]),
        (
            "crates/a/src/b/tests.rs",
            "t",
            vec![unit("crates/a", "b::tests::t")],
        ),
        (
            "crates/a/tests/b.rs",
            "t",
            vec![beside("crates/a", "b", "t")],
        ),
        (
            "crates/a/tests/b/main.rs",
            "t",
            vec![beside("crates/a", "b", "t")],
        ),
        (
            "crates/a/tests/b/c.rs",
            "t",
            vec![beside("crates/a", "b", "c::t")],
        ),
        (
            "crates/store/src/battery/memory.rs",
            "t",
            vec![
                unit("crates/store", "battery::tests::memory::t"),
                beside("crates/store-sqlite", "battery", "memory::t"),
            ],
        ),
        ("crates/a/build.rs", "t", vec![]),
    ];
    for (file, name, expected) in table {
        assert_eq!(places(file, name), expected, "{file}");
    }
}

#[test]
fn battery_check_counts_as_a_test() {
    let text = number("pub async fn kept(store: S) {\n    // §39-21\n}\n");
    let mut map = Map::default();
    rust::scan("crates/store/src/battery/memory.rs", &text, &mut map);
    let expected = number("§39-21 crates/store/src/battery/memory.rs::kept");
    assert_eq!(found(&map), [expected]);
    assert!(map.strays.is_empty());
}

#[test]
fn script_cites_in_check_labels() {
    let text = number(
        "\"\"\"§40-9\"\"\"\ncheck(\"§40-1, §40-2: it holds\", a == b)\ncheck(\n    \"§40-3: so does this\",\n    True)\ncheck(\"plain\", True)\n",
    );
    let mut map = Map::default();
    python::scan("tests/x.py", &text, &mut map);
    let expected = [
        "§40-1 tests/x.py: it holds",
        "§40-2 tests/x.py: it holds",
        "§40-3 tests/x.py: so does this",
    ];
    assert_eq!(found(&map), expected.map(number));
    assert_eq!(strays(&map), [number("tests/x.py:1 §40-9")]);
}

#[test]
fn results_are_parsed_from_test_output() {
    let printed = "running 3 tests\ntest a::good ... ok\ntest a::bad ... FAILED\n\
                   test a::lazy ... ignored, slow\ntest a::panics - should panic ... ok\n";
    let result = |name| parse_rust_result(printed, name);
    assert_eq!(result("a::good"), TestResult::Passed);
    assert_eq!(result("a::bad"), TestResult::Failed);
    assert_eq!(result("a::lazy"), TestResult::NotRun);
    assert_eq!(result("a::panics"), TestResult::Passed);
    assert_eq!(result("good"), TestResult::Missing);
    let printed = "ok    one: x\nFAIL  two: y: because\nok    two: y\n";
    assert_eq!(parse_script_result(printed, "one: x"), TestResult::Passed);
    assert_eq!(
        parse_script_result(printed, "two: y"),
        TestResult::Failed,
        "once is enough"
    );
    assert_eq!(parse_script_result(printed, "three"), TestResult::Missing);
}

#[test]
fn page_is_stale_when_citations_differ() {
    let mut map = Map::default();
    for requirement in groups().flat_map(Requirement::of) {
        let text = format!("// {requirement}\n#[test]\nfn all() {{}}\n");
        rust::scan("crates/a/src/b.rs", &text, &mut map);
    }
    assert!(map.faults().is_empty());
    let proof = map.tests.values().flatten().next().expect("a test");
    let results = [(proof.test.clone(), TestResult::Passed)].into();
    let page = page::write(&REQUIREMENT_PAGES[0], &map, &results, "2026-01-02");
    let conversations = written(&map, REQUIREMENT_PAGES[1].path);
    let read = |path: &str| match path == REQUIREMENT_PAGES[0].path {
        true => page.as_str(),
        false => conversations.as_str(),
    };
    assert!(page.contains("on 2026-01-02"));
    let row = number("| §44-11 | `crates/a/src/b.rs::all` | passed |");
    assert!(page.contains(&row), "{page}");
    assert!(page::stale(read, &map).is_empty());
    rust::scan(
        "crates/c/src/d.rs",
        &number("#[test]\nfn t() {\n    // §44-11\n}\n"),
        &mut map,
    );
    rust::scan(
        "crates/c/src/d.rs",
        "// Z-1\n#[test]\nfn t() {}\n",
        &mut map,
    );
    let stale = page::stale(read, &map);
    let of = |page: usize, text: &str| {
        (
            REQUIREMENT_PAGES[page].path,
            cited(&number(text))[0].clone(),
        )
    };
    assert_eq!(stale, [of(0, "§44-11"), of(1, "Z-1")]);
    map.tests.remove(&stale[0].1);
    let faults = map.faults();
    let path = REQUIREMENT_PAGES[0].path.to_owned();
    assert_eq!(faults, [(path, number("no test cites §44-11"))]);
}

#[test]
fn partial_proof_is_listed_and_needs_the_other_part() {
    let text = number(
        "#[test]\nfn one() {\n    // §39-3 (half: the event), §39-4\n}\n\n\
         #[test]\nfn two() {\n    // §39-3 (half: the question)\n}\n",
    );
    let mut map = Map::default();
    rust::scan("crates/a/src/b.rs", &text, &mut map);
    let script = number("check(\"§39-5 (half: told), §39-6: it is so: always\", True)\n");
    python::scan("tests/x.py", &script, &mut map);
    let expected = [
        "§39-3 crates/a/src/b.rs::one / the event",
        "§39-3 crates/a/src/b.rs::two / the question",
        "§39-4 crates/a/src/b.rs::one",
        "§39-5 tests/x.py: it is so: always / told",
        "§39-6 tests/x.py: it is so: always",
    ];
    assert_eq!(found(&map), expected.map(number));
    let alone = number("proves half of §39-5, and no test the other half");
    let faults: Vec<String> = map.faults().into_iter().map(|(_, text)| text).collect();
    let halves: Vec<&String> = faults.iter().filter(|f| f.contains("half")).collect();
    assert_eq!(halves, [&alone]);
    let page = written(&map, REQUIREMENT_PAGES[0].path);
    let row = number(
        "| §39-3 | `crates/a/src/b.rs::one` (half: the event)<br>\
         `crates/a/src/b.rs::two` (half: the question) | missing |",
    );
    assert!(page.contains(&row), "{page}");
    let stale = page::stale(|_| page.as_str(), &map);
    let is_stale = |text: &str| {
        stale
            .iter()
            .any(|(_, stale)| stale.to_string() == number(text))
    };
    assert!(!is_stale("§39-3") && is_stale("§39-7"));
}
