//! Templates of prompts and their bounds.

use crate::agent::{PromptError, PromptTemplate};
use serde_json::json;

fn render(source: &str, variables: &serde_json::Value) -> Result<String, PromptError> {
    PromptTemplate::compile(source)?.render(variables)
}

#[test]
fn templates_see_user_session_state_and_context() {
    // Z-36 (half: the template)
    let variables = json!({"user": {"displayName": "Ana", "tags": ["vip", "new"]},
        "session": {"messageCount": 3}, "state": {"cart": 2}, "weather": "sunny"});
    let source = "{{ user.displayName }}: {{ user.tags | join(', ') }}; {% if state.cart > 1 %}many\
        {% else %}few{% endif %} items, {{ session.messageCount }} messages, {{ weather }}";
    assert_eq!(
        render(source, &variables).as_deref(),
        Ok("Ana: vip, new; many items, 3 messages, sunny")
    );
}

#[test]
fn missing_variables_are_empty() {
    assert_eq!(
        render("Hello {{ user.profile.name }}!", &json!({})).as_deref(),
        Ok("Hello !")
    );
}

#[test]
fn text_of_users_is_not_a_template_and_not_escaped() {
    let variables = json!({"user": {"displayName": "{{ state }} <b>"}, "state": "secret"});
    assert_eq!(
        render("{{ user.displayName }}", &variables).as_deref(),
        Ok("{{ state }} <b>")
    );
}

#[test]
fn rendering_is_bounded_in_work_and_bytes() {
    let endless = "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}";
    assert_eq!(render(endless, &json!({})), Err(PromptError::TooMuchWork));
    let long = "{% for a in range(20000) %}0123456789abcdef{% endfor %}";
    assert_eq!(render(long, &json!({})), Err(PromptError::OutputTooLong));
    let source = "x".repeat(64 * 1024 + 1);
    assert_eq!(
        render(&source, &json!({})),
        Err(PromptError::TemplateTooLong)
    );
}

#[test]
fn errors_name_the_line() {
    let error = render("fine\n{{ user | shout }}", &json!({})).expect_err("no such filter");
    assert!(
        error.to_string().starts_with("line 2: unknown filter"),
        "{error}"
    );
}
