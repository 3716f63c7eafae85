//! The settings of each node type. Every type of the catalog declares them here or beside its
//! parser, so that an unknown setting is refused instead of being ignored silently.

use super::{http, node_type};
use crate::definition::{Problem, nearest};
use crate::flow::is_function;
use crate::pack::AllowedPackTypes;
use serde_json::Value;
use tandem_record::Object;

/// Keys with this prefix belong to the author and have no meaning to the host.
const AUTHORS_PREFIX: &str = "x-";
/// Maximum number of problems reported for one document.
const MAX_UNKNOWN: usize = 50;

/// What a node type's configuration may contain.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AllowedSettings {
    /// The protocol allows any setting.
    Open,
    Closed(&'static [Setting]),
    /// Closed by a published schema: no option of this host allows other keys, and `x-` keys are
    /// refused too.
    ClosedByProtocol(&'static [Setting]),
    /// Closed, in one of several ways.
    ByConfig(fn(&Object) -> &'static [Setting]),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    name: &'static str,
    inside: SettingValue,
}

impl Setting {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }
}

/// What is known about a setting's value.
#[derive(Debug, Clone, Copy)]
enum SettingValue {
    Anything,
    Object(&'static [Setting]),
    ListOf(&'static [Setting]),
    MapOf(&'static [Setting]),
}

/// A setting whose value its parser checks.
pub(crate) const fn value(name: &'static str) -> Setting {
    Setting {
        name,
        inside: SettingValue::Anything,
    }
}

/// A setting that is an object with settings of its own.
pub(crate) const fn object(name: &'static str, settings: &'static [Setting]) -> Setting {
    Setting {
        name,
        inside: SettingValue::Object(settings),
    }
}

/// A setting that is a list of objects.
pub(crate) const fn list_of(name: &'static str, settings: &'static [Setting]) -> Setting {
    Setting {
        name,
        inside: SettingValue::ListOf(settings),
    }
}

/// A setting that maps names of the author to objects.
pub(crate) const fn map_of(name: &'static str, settings: &'static [Setting]) -> Setting {
    Setting {
        name,
        inside: SettingValue::MapOf(settings),
    }
}

pub(crate) const NONE: AllowedSettings = AllowedSettings::Closed(&[]);

/// The keys of a node's `settings` that this host reads. The protocol allows others, so unknown
/// keys are only warnings.
const NODE_SETTINGS: &[Setting] = &[
    value("timeoutMs"),
    value("timeout"),
    object("retry", http::RETRY),
    value("onError"),
];

/// The keys of a document's `settings` that this host knows.
const WORKFLOW_SETTINGS: &[Setting] = &[
    value("timeout"),
    value("maxRetries"),
    value("logLevel"),
    value("maxLoopbackIterations"),
    value("compensation"),
];
const COMPLIANCE_CONFIG: &[Setting] = &[value("maskingMode")];

/// The settings of triggers that this host acts on. Other types may have any.
const CHANNEL_WRITE_TRIGGER: &[Setting] =
    &[value("channel"), value("onlyFrom"), value("debounceMs")];

/// A setting that does not exist.
pub(crate) struct UnknownSetting {
    pub(crate) problem: Problem,
    pub(crate) refusal: RefusalPolicy,
}

/// Whether a document with an unknown setting is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RefusalPolicy {
    /// Whatever the operator allows.
    Always,
    /// Unless the operator allows it.
    #[default]
    UnlessAllowed,
    Never,
}

/// Every unknown setting in a document. The document need not be valid otherwise.
pub(crate) fn unknown_settings(document: &Value) -> Vec<UnknownSetting> {
    let nodes = document["nodes"].as_array().into_iter().flatten();
    let mut search = Search {
        refusal: RefusalPolicy::Never,
        ..Search::default()
    };
    for (at, owner, settings) in [
        ("/settings", "a workflow's settings", WORKFLOW_SETTINGS),
        (
            "/metadata/complianceConfig",
            "complianceConfig",
            COMPLIANCE_CONFIG,
        ),
    ] {
        if let Some(Value::Object(given)) = document.pointer(at) {
            search.look(owner, settings, given, at);
        }
    }
    for (i, node) in nodes.enumerate() {
        search.node = node["id"].as_str();
        if let Some(given) = node["settings"].as_object() {
            search.refusal = RefusalPolicy::Never;
            let at = format!("/nodes/{i}/settings");
            search.look("a node's settings", NODE_SETTINGS, given, &at);
        }
        let (Some(type_id), Some(config)) = (node["typeId"].as_str(), node["config"].as_object())
        else {
            continue;
        };
        let Some(known) = node_type(type_id) else {
            continue;
        };
        let (settings, refusal) = match known.settings {
            AllowedSettings::Open => continue,
            AllowedSettings::Closed(settings) => (settings, RefusalPolicy::UnlessAllowed),
            AllowedSettings::ClosedByProtocol(settings) => (settings, RefusalPolicy::Always),
            AllowedSettings::ByConfig(choose) => (choose(config), RefusalPolicy::UnlessAllowed),
        };
        search.refusal = refusal;
        search.look(type_id, settings, config, &format!("/nodes/{i}/config"));
    }
    search.node = None;
    search.refusal = RefusalPolicy::UnlessAllowed;
    let triggers = document["triggers"].as_array().into_iter().flatten();
    for (i, trigger) in triggers.enumerate() {
        if let Some(given) = trigger["config"].as_object()
            && trigger["type"] == "channel-write"
        {
            let at = format!("/triggers/{i}/config");
            search.look("a channel-write trigger", CHANNEL_WRITE_TRIGGER, given, &at);
        }
    }
    search.found.truncate(MAX_UNKNOWN);
    search.found
}

/// Every setting of a pack's node that the pack's schema does not declare.
pub(crate) fn unknown_pack_settings(
    document: &Value,
    packs: AllowedPackTypes<'_>,
) -> Vec<UnknownSetting> {
    let nodes = document["nodes"].as_array().into_iter().flatten();
    let mut found = Vec::new();
    for (i, node) in nodes.enumerate() {
        let type_id = node["typeId"].as_str().unwrap_or_default();
        let Some(shape) = packs.config(type_id) else {
            if packs.is_listed(type_id) && node["config"].as_object().is_some_and(|c| !c.is_empty())
            {
                let message = format!(
                    "is not checked: the pack of {type_id} declares no schema for its configuration"
                );
                let mut problem = Problem::new(format!("/nodes/{i}/config"), message);
                problem.node = node["id"].as_str().map(Into::into);
                found.push(UnknownSetting {
                    problem,
                    refusal: RefusalPolicy::Never,
                });
            }
            continue;
        };
        for unknown in shape.unknown_keys(&node["config"]) {
            if unknown.key.starts_with(AUTHORS_PREFIX) {
                continue;
            }
            let known = || unknown.known.iter().copied();
            let key = escaped(unknown.key);
            let path = format!("/nodes/{i}/config{}/{key}", unknown.at);
            let mut problem = Problem::new(path, not_a_setting(type_id, unknown.key, known));
            problem.node = node["id"].as_str().map(Into::into);
            found.push(UnknownSetting {
                problem,
                refusal: RefusalPolicy::UnlessAllowed,
            });
        }
    }
    found.truncate(MAX_UNKNOWN);
    found
}

/// Every unknown setting of one object that is not a node.
pub(crate) fn unknown_keys(
    owner: &str,
    settings: &'static [Setting],
    given: &Object,
) -> Vec<Problem> {
    let mut search = Search::default();
    search.look(owner, settings, given, "");
    let found = search.found.into_iter();
    found.map(|unknown| unknown.problem).collect()
}

#[derive(Default)]
struct Search<'a> {
    refusal: RefusalPolicy,
    node: Option<&'a str>,
    found: Vec<UnknownSetting>,
}

impl Search<'_> {
    /// `owner` describes what has the settings.
    fn look(&mut self, owner: &str, settings: &'static [Setting], given: &Object, at: &str) {
        for (key, value) in given {
            let path = format!("{at}/{}", escaped(key));
            match settings.iter().find(|setting| setting.name == key) {
                Some(setting) => self.look_inside(setting, value, &path),
                None if key.starts_with(AUTHORS_PREFIX)
                    && self.refusal != RefusalPolicy::Always => {}
                None => self.report(owner, settings, key, path),
            }
        }
    }

    fn look_inside(&mut self, setting: &Setting, value: &Value, path: &str) {
        match (setting.inside, value) {
            (SettingValue::Object(settings), Value::Object(given)) => {
                self.look(setting.name, settings, given, path);
            }
            (SettingValue::ListOf(settings), Value::Array(items)) => {
                for (i, item) in items.iter().enumerate() {
                    if let Value::Object(given) = item {
                        self.look(setting.name, settings, given, &format!("{path}/{i}"));
                    }
                }
            }
            (SettingValue::MapOf(settings), Value::Object(entries)) => {
                for (key, entry) in entries {
                    if let Value::Object(given) = entry
                        && !is_function(entry)
                    {
                        let path = format!("{path}/{}", escaped(key));
                        self.look(setting.name, settings, given, &path);
                    }
                }
            }
            // The value has the wrong type; its parser reports that.
            (
                SettingValue::Anything
                | SettingValue::Object(_)
                | SettingValue::ListOf(_)
                | SettingValue::MapOf(_),
                _,
            ) => {}
        }
    }

    fn report(&mut self, owner: &str, settings: &[Setting], key: &str, path: String) {
        if self.found.len() >= MAX_UNKNOWN {
            return;
        }
        let names = || settings.iter().map(|setting| setting.name);
        let message = not_a_setting(owner, key, names);
        let mut problem = Problem::new(path, message);
        problem.node = self.node.map(Into::into);
        self.found.push(UnknownSetting {
            problem,
            refusal: self.refusal,
        });
    }
}

fn not_a_setting<'a, N: Iterator<Item = &'a str>>(
    owner: &str,
    key: &str,
    names: impl Fn() -> N,
) -> String {
    match nearest(key, names()) {
        Some(meant) => format!("is not a setting of {owner}; did you mean `{meant}`?"),
        None if names().next().is_none() => format!("is not a setting of {owner}, which has none"),
        None => {
            let all: Vec<&str> = names().collect();
            format!("is not a setting of {owner}; it has {}", all.join(", "))
        }
    }
}

/// A key as a part of a JSON pointer.
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod open_values;

#[cfg(test)]
mod tests {
    use super::super::all_types;
    use super::*;
    use serde_json::json;

    fn unknown(type_id: &str, config: &Value) -> Vec<String> {
        let node = json!({"id": "n", "typeId": type_id, "config": config});
        let found = unknown_settings(&json!({"nodes": [node]}));
        let line = |u: UnknownSetting| format!("{}: {}", u.problem.path, u.problem.message);
        found.into_iter().map(line).collect()
    }

    #[test]
    fn every_node_type_refuses_a_setting_that_does_not_exist() {
        for known in all_types() {
            let found = unknown(known.type_id, &json!({"madeUpSetting": 1}));
            let open = ["core.noop", "core.identity"].contains(&known.type_id);
            assert_eq!(found.is_empty(), open, "{}: {found:?}", known.type_id);
        }
    }

    #[test]
    fn nested_settings_refuse_unknown_keys_too() {
        fn walk(type_id: &str, settings: &'static [Setting], wrap: &dyn Fn(Value) -> Value) {
            let found = unknown(type_id, &wrap(json!({"madeUpSetting": 1})));
            assert_eq!(found.len(), 1, "{type_id} {}: {found:?}", wrap(json!({})));
            for setting in settings {
                let name = setting.name;
                match setting.inside {
                    SettingValue::Anything => {}
                    SettingValue::Object(inner) => {
                        walk(type_id, inner, &|value| wrap(json!({ name: value })));
                    }
                    SettingValue::ListOf(inner) => {
                        walk(type_id, inner, &|value| wrap(json!({ name: [value] })));
                    }
                    SettingValue::MapOf(inner) => {
                        walk(type_id, inner, &|value| wrap(json!({ name: {"a": value} })));
                    }
                }
            }
        }
        for known in all_types() {
            match known.settings {
                AllowedSettings::Closed(settings) | AllowedSettings::ClosedByProtocol(settings) => {
                    walk(known.type_id, settings, &|value| value);
                }
                AllowedSettings::Open | AllowedSettings::ByConfig(_) => {}
            }
        }
    }

    #[test]
    fn misspelt_setting_gets_a_suggestion() {
        assert_eq!(
            unknown(
                "core.approvalGate",
                &json!({"requiredApproval": 2, "tandem": {"onTimeOut": {}}})
            ),
            [
                "/nodes/0/config/requiredApproval: is not a setting of core.approvalGate; did you \
                 mean `requiredApprovals`?",
                "/nodes/0/config/tandem/onTimeOut: is not a setting of tandem; did you mean \
                 `onTimeout`?"
            ]
        );
        for (kind, key, meant) in [
            ("approval", "requiredApproval", "requiredApprovals"),
            ("clarification", "question", "questions"),
            ("external-event", "corelation", "correlation"),
            ("custom", "paylod", "payload"),
            ("low-confidence", "treshold", "threshold"),
        ] {
            let config = json!({"kind": kind, "data": {key: 2}});
            let found = unknown("core.interrupt", &config);
            assert_eq!(found.len(), 1, "{kind}: {found:?}");
            assert!(
                found[0].contains(&format!("/config/data/{key}")),
                "{found:?}"
            );
            assert!(
                found[0].contains(&format!("did you mean `{meant}`")),
                "{found:?}"
            );
        }
        let open = json!({"kind": "x-host-tandem-kind", "data": {"anything": 1}});
        assert!(unknown("core.interrupt", &open).is_empty());
    }

    #[test]
    fn unknown_keys_in_node_settings_are_only_warnings() {
        let settings = json!({"timeoutMS": 5, "retry": {"attempts": 3}, "onError": "fail"});
        let node = json!({"id": "n", "typeId": "core.noop", "config": {}, "settings": settings});
        let found = unknown_settings(&json!({"nodes": [node]}));
        let paths: Vec<&str> = found.iter().map(|u| u.problem.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "/nodes/0/settings/retry/attempts",
                "/nodes/0/settings/timeoutMS"
            ]
        );
        assert!(found.iter().all(|u| u.refusal == RefusalPolicy::Never));
    }

    #[test]
    fn x_prefixed_keys_are_allowed_except_in_protocol_closed_configs() {
        let own = json!({"x-editor": {"colour": "red"}});
        assert!(unknown("core.approvalGate", &own).is_empty());
        assert_eq!(unknown("core.dispatch", &own).len(), 1);
    }
}
