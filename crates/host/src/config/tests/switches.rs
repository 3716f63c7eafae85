use super::*;

#[test]
fn switches_are_on_or_off_and_conformance_defaults_to_test_seams() {
    let read = |env: &[(&str, &str)], file: Option<&str>| {
        let s = resolved(Layer::default(), env, file).unwrap();
        (s.conformance, s.agent_policy.is_supported(), s.ancestry)
    };
    assert_eq!(read(&[], None), (false, true, true));
    let seams = ("TANDEM_TEST_SEAMS", "1");
    assert_eq!(read(&[seams], None), (true, true, true));
    let off = [
        seams,
        ("TANDEM_CONFORMANCE", "off"),
        ("TANDEM_MULTI_AGENT", "off"),
        ("TANDEM_ANCESTRY", "off"),
    ];
    assert_eq!(read(&off, None), (false, false, false));
    let file = "conformance = \"on\"\nmulti_agent = \"off\"\nancestry = false";
    assert_eq!(read(&[], Some(file)), (true, false, false));
    assert_eq!(
        read(&[("TANDEM_MULTI_AGENT", "on")], Some(file)),
        (true, true, false)
    );
    for name in [
        "TANDEM_CONFORMANCE",
        "TANDEM_MULTI_AGENT",
        "TANDEM_ANCESTRY",
    ] {
        assert!(resolved(Layer::default(), &[(name, "maybe")], None).is_err());
    }
}
