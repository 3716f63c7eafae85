use crate::UrlGuard;

fn testing() -> UrlGuard {
    UrlGuard {
        allow_private: true,
        ..UrlGuard::default()
    }
}

#[test]
fn ordinary_urls_pass() {
    for url in [
        "https://example.com",
        "http://example.com:8080/path?query=1#fragment",
        "https://EXAMPLE.com./",
        "https://1.1.1.1/",
        "https://[2606:4700::1111]:8443/",
        "https://localhost.example.com/",
        "https://notlocalhost/",
        "https://mylocal/",
        "https://metadata.example.com/",
        "https://bücher.example/",
    ] {
        assert!(UrlGuard::default().check_url(url).is_ok(), "{url}");
    }
}

#[test]
fn other_schemes_and_shapes_are_refused_even_in_tests() {
    for url in [
        "",
        "example.com",
        "/relative",
        "//example.com/",
        "http://",
        "https://./",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "data:text/plain,hello",
        "javascript:alert(1)",
        "ws://example.com/",
        "unix:/run/docker.sock",
        "https://user@example.com/",
        "https://user:pass@example.com/",
        "https://:pass@example.com/",
        "https://exa mple.com/",
        "https://256.256.256.256/",
        "https://[::1",
        "https://example.com:99999/",
    ] {
        assert!(UrlGuard::default().check_url(url).is_err(), "{url}");
        assert!(testing().check_url(url).is_err(), "{url} in tests");
    }
}

#[test]
fn private_targets_are_refused_in_every_spelling_and_allowed_in_tests() {
    for url in [
        "http://localhost",
        "http://LOCALHOST:7717/",
        "http://localhost./",
        "http://api.localhost/",
        "http://printer.local/",
        "http://vault.internal/",
        "http://db.svc.cluster/",
        "http://internal/",
        "http://127.0.0.1/",
        "http://127.1/",
        "http://127.0.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://017700000001/",
        "http://127.0.0.1./",
        "http://%31%32%37.0.0.1/",
        "http://１２７.0.0.1/",
        "http://127。0。0。1/",
        "http:127.0.0.1/",
        "http:\\\\127.0.0.1\\",
        "http://ⓛocalhost/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://192.168.1.1/",
        "http://3232235777/",
        "http://100.64.0.1/",
        "http://[::1]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:7f00:1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[fd12:3456::1]/",
    ] {
        let rejected = UrlGuard::default().check_url(url).expect_err(url);
        assert!(rejected.reason.contains("private"), "{url}: {rejected}");
        assert!(testing().check_url(url).is_ok(), "{url} in tests");
    }
}

#[test]
fn metadata_and_unroutable_targets_are_refused_even_in_tests() {
    for url in [
        "http://metadata/",
        "http://METADATA./computeMetadata/v1/",
        "http://metadata.google.internal/",
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://0251.0376.0251.0376/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[fd00:ec2::254]/",
        "http://0.0.0.0/",
        "http://0/",
        "http://[::]/",
        "http://[fe80::1]/",
        "http://[::127.0.0.1]/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
    ] {
        assert!(UrlGuard::default().check_url(url).is_err(), "{url}");
        assert!(testing().check_url(url).is_err(), "{url} in tests");
    }
}

#[test]
fn https_can_be_required_and_tests_relax_it() {
    let mut guard = UrlGuard {
        require_https: true,
        ..UrlGuard::default()
    };
    assert!(guard.check_url("https://example.com/").is_ok());
    assert!(guard.check_url("http://example.com/").is_err());
    guard.allow_private = true;
    assert!(guard.check_url("http://127.0.0.1:9/").is_ok());
}

#[test]
fn denied_hosts_are_refused_with_all_below_them() {
    let guard = UrlGuard {
        allow_private: true,
        deny_hosts: ["Example.com", "1.1.1.1", "[2606:4700::1]", "127.0.0.2", ""]
            .map(String::from)
            .to_vec(),
        require_https: false,
    };
    for url in [
        "https://example.com/",
        "https://EXAMPLE.COM./",
        "https://a.b.example.com/",
        "https://1.1.1.1/",
        "https://[::ffff:1.1.1.1]/",
        "https://[2606:4700::1]/",
        "http://127.0.0.2/",
    ] {
        let rejected = guard.check_url(url).expect_err(url);
        assert!(rejected.reason.contains("deny list"), "{url}: {rejected}");
    }
    for url in [
        "https://notexample.com/",
        "https://example.org/",
        "http://127.0.0.1/",
    ] {
        assert!(guard.check_url(url).is_ok(), "{url}");
    }
}

#[test]
fn a_rejection_quotes_no_credential() {
    for url in [
        "https://user:hunter2hunter2@example.com/",
        "http://10.0.0.1/?token=hunter2hunter2",
        "https://hunter2hunter2 /",
    ] {
        let rejected = UrlGuard::default().check_url(url).expect_err(url);
        assert!(!rejected.to_string().contains("hunter2"), "{rejected}");
    }
}
