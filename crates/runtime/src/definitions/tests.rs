use super::flow_definition;
use tandem_record::WorkflowId;

#[test]
fn flow_has_a_definition_that_compiles() {
    let workflow = WorkflowId::new("flow.demo.booking");
    let definition = flow_definition(&workflow).expect("it compiles");
    assert_eq!(definition.id().as_str(), "flow");
}
