//! The OpenAPI document, collected from the routes themselves.

use serde_json::{Value, json};
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Components, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder,
};

const BEARER: &str = "bearer";
const ENVELOPE: &str = "ErrorEnvelope";
/// Routes that need no credential.
const PUBLIC: [&str; 7] = [
    "/.well-known/openwop",
    "/v1/openapi.json",
    "/healthz",
    "/readyz",
    "/metrics",
    // The token in the path is the credential.
    "/v1/interrupts/{token}",
    // So is the token in the first frame.
    "/v1/host/tandem/agents/{agentId}/ui",
];

/// The document without routes.
pub(crate) fn blank(version: &str) -> OpenApi {
    let info = InfoBuilder::new()
        .title("Tandem")
        .version(version)
        .description(Some(
            "A durable host for OpenWOP v1 workflow runs. Every path outside the public ones \
             needs `Authorization: Bearer <key>`; every refusal is the envelope \
             `{error, message, details?}`.",
        ));
    OpenApiBuilder::new().info(info).build()
}

/// Adds what applies to every operation: authentication and the error envelope.
pub(crate) fn finish(openapi: &mut OpenApi) {
    let components = openapi.components.get_or_insert_with(Components::new);
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme(BEARER, SecurityScheme::Http(scheme));
    let envelope = serde_json::from_value(envelope()).expect("a fixed schema");
    components.schemas.insert(ENVELOPE.to_owned(), envelope);
    let refusal = ResponseBuilder::new()
        .description("A refusal or a fault")
        .content(
            "application/json",
            ContentBuilder::new()
                .schema(Some(Ref::from_schema_name(ENVELOPE)))
                .build(),
        )
        .build();
    let secured = [SecurityRequirement::new::<_, [&str; 0], &str>(BEARER, [])];
    for (path, item) in &mut openapi.paths.paths {
        for operation in operations(item) {
            let responses = &mut operation.responses.responses;
            responses.insert("default".to_owned(), RefOr::T(refusal.clone()));
            if !PUBLIC.contains(&path.as_str()) {
                operation.security = Some(secured.to_vec());
            }
        }
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [
        &mut item.get,
        &mut item.put,
        &mut item.post,
        &mut item.delete,
    ]
    .into_iter()
    .flatten()
}

fn envelope() -> Value {
    json!({
        "type": "object",
        "required": ["error", "message"],
        "additionalProperties": false,
        "properties": {
            "error": {"type": "string", "description": "A stable code in snake_case"},
            "message": {"type": "string", "description": "For people"},
            "details": {"type": "object", "description": "What a program may want to know"},
        },
    })
}
