//! One call of a node: the request, the response, and their limits.

use crate::imports::HostState;
use crate::limits::PackLimits;
use crate::load::{Pack, PackNode};
use crate::sandbox::{CallError, Sandbox, Stop};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tandem_record::{
    EffectId, ErrorInfo, MAX_NESTING, NodeId, Object, PackAnswer, PackCall, PackResult, RunId,
    nests_deeper,
};
use wasmi::Val;

/// Limit of characters of a node's error code.
const MAX_CODE: usize = 64;

/// The context of a call.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    /// Identity of the call: the seed of the module's random bytes.
    pub effect: &'a EffectId,
    pub run: &'a RunId,
    pub node: &'a NodeId,
    pub attempt: u32,
}

/// Inputs come first: simple packs search for a key from the beginning.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    abi_version: u32,
    inputs: &'a Object,
    node_context: NodeContext<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeContext<'a> {
    run_id: &'a RunId,
    node_id: &'a NodeId,
    tenant_id: &'a str,
    attempt: u32,
    config: &'a Object,
    configurable: &'a Object,
    agent: Option<&'a Value>,
}

#[derive(Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
enum Response {
    Completed {
        #[serde(default)]
        output: Value,
    },
    Suspended {},
    Failed {
        error: Failure,
    },
}

#[derive(Deserialize)]
struct Failure {
    code: String,
    #[serde(default)]
    message: String,
    details: Option<Value>,
    /// Whether a retry could succeed. Not part of the protocol.
    #[serde(default)]
    retryable: bool,
}

/// Calls the `index`-th node of a pack.
pub(crate) fn call(
    pack: &Pack,
    index: usize,
    who: Caller<'_>,
    call: &PackCall,
    limits: &PackLimits,
    stop: Stop,
) -> PackAnswer {
    let node = &pack.nodes[index];
    let request = match request(node, who, call, limits) {
        Ok(request) => request,
        Err(error) => return PackAnswer::failed(error),
    };
    let seed = format!("{}:{}", who.effect, who.attempt);
    let host_state = HostState::new(*limits, pack.own_pages, call.at, seed);
    let mut sandbox = match Sandbox::new(&pack.module, &pack.linker, host_state, *limits, stop) {
        Ok(sandbox) => sandbox,
        // It could be instantiated when it was loaded.
        Err(load_error) => {
            let message = format!("the node could not be set up: {load_error}");
            return PackAnswer::failed(ErrorInfo::new("pack_trap", message));
        }
    };
    let result = match exchange(&mut sandbox, index, &request, limits) {
        Ok(response) => parse_response(node, response),
        Err(error) => error.into_result(limits),
    };
    PackAnswer {
        result,
        log_lines: sandbox.into_host_state().into_log(),
    }
}

fn request(
    node: &PackNode,
    who: Caller<'_>,
    call: &PackCall,
    limits: &PackLimits,
) -> Result<Vec<u8>, ErrorInfo> {
    let fits = node.schemas.config(&call.config);
    fits.and_then(|()| node.schemas.inputs(&call.inputs))
        .map_err(|why| ErrorInfo::new("validation_error", why))?;
    let request = Request {
        abi_version: 1,
        inputs: &call.inputs,
        node_context: NodeContext {
            run_id: who.run,
            node_id: who.node,
            tenant_id: call.tenant.as_str(),
            attempt: who.attempt,
            config: &call.config,
            configurable: &call.configurable,
            agent: call.agent.as_ref(),
        },
    };
    let bytes = serde_json::to_vec(&request).expect("JSON values are JSON");
    if bytes.len() > limits.request_bytes {
        let message = format!(
            "the node would be asked with {} bytes, and {} is the most",
            bytes.len(),
            limits.request_bytes
        );
        return Err(ErrorInfo::new("content_too_long", message));
    }
    Ok(bytes)
}

/// The response as bytes, or what is wrong with it.
fn exchange(
    sandbox: &mut Sandbox,
    index: usize,
    request: &[u8],
    limits: &PackLimits,
) -> Result<Result<Vec<u8>, String>, CallError> {
    let int = |n: usize| Val::I32(i32::try_from(n).expect("bounded by the limits"));
    let place = match sandbox.call("openwop_alloc", &[int(request.len())])?[..] {
        [Val::I32(at)] => at.cast_unsigned(),
        _ => return Err(CallError::Trap("openwop_alloc gave no place".to_owned())),
    };
    sandbox.write(place, request)?;
    let given = [
        int(index),
        Val::I32(place.cast_signed()),
        int(request.len()),
    ];
    let results = sandbox.call("openwop_node_invoke", &given)?;
    // Nothing is freed: the instance is dropped with its memory.
    let response = Sandbox::pair(&results).unwrap_or_default();
    Ok(sandbox
        .read(response, limits.response_bytes)
        .map(<[u8]>::to_vec))
}

fn parse_response(node: &PackNode, response: Result<Vec<u8>, String>) -> PackResult {
    let failed = |code: &str, message: String| PackResult::Failed {
        error: ErrorInfo::new(code, message),
    };
    let invalid = |why: String| {
        let message = format!("the node's response is not one: {why}");
        failed("pack_response_invalid", message)
    };
    let bytes = match response {
        Ok(bytes) => bytes,
        Err(why) => return invalid(why),
    };
    if nests_deeper(&bytes, MAX_NESTING) {
        return invalid(format!("it nests deeper than {MAX_NESTING} levels"));
    }
    match serde_json::from_slice::<Response>(&bytes) {
        Err(error) => invalid(error.to_string()),
        Ok(Response::Completed { output }) => {
            let outputs = match output {
                Value::Object(ports) => ports,
                Value::Null => Object::new(),
                other => Object::from_iter([("output".to_owned(), other)]),
            };
            match node.schemas.outputs(&outputs) {
                Ok(()) => PackResult::Completed { outputs },
                Err(why) => invalid(why),
            }
        }
        Ok(Response::Suspended {}) => failed(
            "wasm_suspend_not_implemented",
            "the node wants to wait for somebody, which nodes of packs cannot do here".to_owned(),
        ),
        Ok(Response::Failed { error }) => PackResult::Failed {
            error: ErrorInfo {
                code: code(&error.code),
                message: error.message,
                details: error.details,
                retryable: error.retryable,
            },
        },
    }
}

/// The given code if it is well-formed, or a default code.
fn code(given: &str) -> String {
    let fits = !given.is_empty()
        && given.len() <= MAX_CODE
        && given
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if fits { given } else { "pack_failed" }.to_owned()
}
