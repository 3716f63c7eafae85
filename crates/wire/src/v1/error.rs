use serde::Serialize;
use tandem_record::Object;

#[derive(Serialize)]
pub struct ErrorEnvelope {
    pub error: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Object>,
}
