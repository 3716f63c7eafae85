//! From an agent's configuration as JSON to an [`AgentSpec`].

use super::{
    AgentProblem, AgentSpec, LoadedFlow, Prompt, PromptTemplate, admin_auth, command, conduct,
    flows, hitl, limits, model, names, router, schedule, scheduler, settings, speech, targets,
    tool, web_chat,
};
use crate::flow::{AuthorSchema, is_function};
use crate::object_reader::{FieldProblems, ObjectReader};
use crate::session::Language;
use serde_json::Value;
use std::collections::BTreeMap;
use tandem_schema::Budget;

const MAX_WORKFLOWS: usize = 500;
const MAX_TRANSPORTS: usize = 50;
const MAX_HTTP_ORIGINS: usize = 100;
const DEFAULT_VOICE: &str = "alloy";

impl AgentSpec {
    /// `config` is the object given to `createAgent`, its functions replaced by markers; `flows` are
    /// those found in flow files.
    pub fn compile(
        agent_id: &str,
        config: &Value,
        flows: &[LoadedFlow],
    ) -> Result<Self, Vec<AgentProblem>> {
        let problems = FieldProblems::default();
        let spec = read(agent_id, config, flows, &problems);
        let problems = problems.into_inner().into_iter();
        let problems: Vec<AgentProblem> = problems
            .map(|problem| AgentProblem {
                path: problem.path,
                message: problem.message,
            })
            .collect();
        spec.filter(|_| problems.is_empty()).ok_or(problems)
    }

    /// The prompt for these variables; absent where a function of the author makes it.
    pub fn prompt_template(&self) -> Option<&PromptTemplate> {
        match &self.prompt {
            Prompt::Template(template) => Some(template),
            Prompt::Function => None,
        }
    }

    /// A word for yes and a word for no that a confirmation understands, to be offered as buttons.
    pub fn confirm_words(&self) -> (String, String) {
        let defaults = &self.hitl.confirm;
        let (yes, no) = self.language.plain_words();
        let first = |given: &Option<Vec<String>>, plain: &str| {
            let given = given.as_ref().and_then(|words| words.first().cloned());
            given.unwrap_or_else(|| plain.to_owned())
        };
        (
            first(&defaults.positive_keywords, yes),
            first(&defaults.negative_keywords, no),
        )
    }

    pub fn tool(&self, name: &str) -> Option<&super::AgentTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

fn read(
    agent_id: &str,
    config: &Value,
    loaded: &[LoadedFlow],
    problems: &FieldProblems,
) -> Option<AgentSpec> {
    let fields = &ObjectReader::new(config, "", problems)?;
    settings::report_unknown(config, problems);
    // All schemas of one agent share a budget.
    let budget = &mut Budget::default();
    let prompt = prompt(fields);
    let output_schema = fields.schema("outputSchema", budget);
    let admin_auth = admin_auth::admin_auth(fields);
    let scheduler = scheduler::scheduler(fields);
    let spec = AgentSpec {
        agent_id: agent_id.to_owned(),
        config: config.clone(),
        prompt: prompt.unwrap_or(Prompt::Function),
        has_context: fields.function("context"),
        output_schema: output_schema.map(|(source, schema)| AuthorSchema::new(source, schema)),
        language: language(fields),
        modality: conduct::modality(fields),
        tools: tool::tools(fields, budget),
        commands: command::commands(fields, problems, budget),
        hooks: conduct::hooks(fields),
        flows: flows::flows(fields, loaded, problems, budget),
        flow_command: fields.flag("flowCommand").unwrap_or_default(),
        flow_router: router::router(fields, budget),
        hitl: hitl::hitl(fields, admin_auth.is_some()),
        admin_auth,
        schedules: schedule::schedules(fields, &scheduler, problems),
        scheduler,
        single_user: fields.text("singleUser"),
        texts: conduct::texts(fields),
        limits: limits::limits(fields),
        timeouts: limits::timeouts(fields),
        retry: limits::retry(fields),
        tts_voice: fields
            .text("ttsVoice")
            .unwrap_or_else(|| DEFAULT_VOICE.to_owned()),
        speech: speech::speech(fields),
        finalization: conduct::finalization(fields),
        transports: transports(fields),
        web_chat: web_chat::web_chat(fields),
        http_origins: http_origins(fields),
        model: model::model(fields, "model"),
        extraction_model: model::model(fields, "extractionModel"),
        inbound: conduct::inbound(fields),
        agent_mode: conduct::agent_mode(fields),
        on_new_message: conduct::on_new_message(fields),
        on_divergence: conduct::on_divergence(fields),
        strict: fields.flag("strict").unwrap_or_default(),
        redaction: conduct::redaction(fields),
        consent: conduct::consent(fields),
        workflows: fields.texts("workflows", MAX_WORKFLOWS),
        profile_tool: fields.flag("profileTool").unwrap_or_default(),
    };
    names::check(&spec, problems);
    targets::check(&spec.hitl, problems);
    Some(spec)
}

fn prompt(fields: &ObjectReader<'_>) -> Option<Prompt> {
    if fields.get("prompt").is_some_and(is_function) {
        return Some(Prompt::Function);
    }
    let text = fields.required_text("prompt");
    if text.trim().is_empty() {
        return None;
    }
    let compiled = PromptTemplate::compile(&text);
    compiled
        .map_err(|error| fields.report("prompt", error.to_string()))
        .map(|template| Prompt::Template(Box::new(template)))
        .ok()
}

/// An unknown language counts as English.
fn language(fields: &ObjectReader<'_>) -> Language {
    let given = fields.text("language");
    given.map_or(Language::En, |code| Language::from_code(&code))
}

fn transports(fields: &ObjectReader<'_>) -> BTreeMap<String, Value> {
    let transports = map(fields, "transports", MAX_TRANSPORTS);
    let none = fields.get("transports").and_then(Value::as_object);
    if none.is_some_and(|given| given.is_empty()) {
        fields.report(
            "transports",
            "needs at least one; leave it out for loopback",
        );
    }
    transports
}

/// `http.allow`: scheme, host and port each.
fn http_origins(fields: &ObjectReader<'_>) -> Vec<String> {
    let settings = fields.section("http");
    let origins = settings.texts("allow", MAX_HTTP_ORIGINS);
    let origins = origins.unwrap_or_default();
    let is_origin = |text: &str| {
        let host = text
            .strip_prefix("https://")
            .or(text.strip_prefix("http://"));
        host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '?', '#', '@', '*']))
    };
    if let Some(bad) = origins.iter().find(|origin| !is_origin(origin)) {
        let message = format!("{bad:?} is no origin; write `https://host` or `https://host:port`");
        settings.report("allow", message);
    }
    origins
}

fn map(fields: &ObjectReader<'_>, name: &str, max: usize) -> BTreeMap<String, Value> {
    let entries = fields.entries(name, max).into_iter();
    entries
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}
