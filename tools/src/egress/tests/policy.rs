//! Which URLs may be asked, by their text alone.

use proptest::prelude::*;
use reqwest::Url;
use url::Host;

use super::policy;
use crate::egress::{EgressPolicy, Refused, addresses, policy::Route};

fn check(policy: &EgressPolicy, url: &str) -> Result<(), Refused> {
    policy.check_url(&Url::parse(url).unwrap()).map(drop)
}

/// Addresses that nothing may connect to, in many spellings.
const REFUSED: [&str; 61] = [
    "127.0.0.1",
    "127.255.255.254",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "127.1",
    "127.0.0.1.",
    "１２７.０.０.１",
    "0.0.0.0",
    "0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.255",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:0:10.0.0.1]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::1]",
    "[100::1]",
    "[2001::1]",
    "[2001:0:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001:db8::1]",
    "[2002:0a00:0001::1]",
    "[2002:7f00:1::]",
    "[3fff::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
];

const PUBLIC: [&str; 14] = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "223.255.255.255",
    "[2606:4700::1111]",
    "[2a00:1450:4001::1]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b::8.8.8.8]",
];

#[test]
fn only_public_addresses_are_reached() {
    let policy = EgressPolicy::default();
    for host in REFUSED {
        assert!(
            check(&policy, &format!("http://{host}/")).is_err(),
            "{host} must be refused"
        );
        assert!(
            check(&policy, &format!("https://{host}:8443/x?y")).is_err(),
            "{host} must be refused"
        );
    }
    for host in PUBLIC {
        assert_eq!(check(&policy, &format!("http://{host}/")), Ok(()), "{host}");
    }
}

#[test]
fn a_refusal_says_what_to_write() {
    for (url, entry) in [
        ("http://10.1.2.3:8080/orders", "10.1.2.3"),
        ("http://[::1]/", "[::1]"),
    ] {
        let mut policy = policy(&[]);
        let said = check(&policy, url).unwrap_err().to_string();
        let advice = format!("add \"{entry}\" to `allow` under `[egress]`");
        assert!(said.contains(&advice), "{said}");
        policy.allow(entry).unwrap();
        assert_eq!(check(&policy, url), Ok(()));
    }
}

#[test]
fn schemes_and_users_are_refused() {
    let policy = policy(&["localhost"]);
    for url in [
        "ftp://localhost/",
        "file:///etc/passwd",
        "gopher://localhost/",
        "data:text/plain,x",
        "unix:/run/x",
    ] {
        assert!(check(&policy, url).is_err(), "{url}");
    }
    for url in [
        "http://user@localhost/",
        "http://user:pass@localhost/",
        "http://:pass@localhost/",
    ] {
        assert!(
            check(&policy, url)
                .unwrap_err()
                .to_string()
                .contains("user or a password"),
            "{url}"
        );
    }
}

#[test]
fn the_operator_allows_networks_addresses_and_hosts() {
    let policy = policy(&[
        "10.1.0.0/16",
        "192.168.0.7",
        "fd00:1::/32",
        "[::1]:9000",
        "LocalHost:8080",
        "intern.example",
        "127.0.0.1:81",
    ]);
    for allowed in [
        "http://10.1.2.3/",
        "http://[::ffff:10.1.2.3]/",
        "http://[64:ff9b::10.1.2.3]/",
        "http://192.168.0.7:5000/",
        "http://[fd00:1::5]/",
        "http://[::1]:9000/",
        "http://127.0.0.1:81/",
        "http://127.1:81/",
    ] {
        assert_eq!(check(&policy, allowed), Ok(()), "{allowed}");
    }
    for refused in [
        "http://10.2.0.1/",
        "http://192.168.0.8/",
        "http://[::1]:9001/",
        "http://127.0.0.1/",
        "http://[fd00:2::]/",
    ] {
        assert!(check(&policy, refused).is_err(), "{refused}");
    }
    let route = |url: &str| policy.check_url(&Url::parse(url).unwrap()).unwrap();
    for named in [
        "http://localhost:8080/",
        "http://localhost.:8080/",
        "https://INTERN.example/",
        "http://intern.example:1/",
    ] {
        assert_eq!(route(named), Route::Allowed, "{named}");
    }
    for other in [
        "http://localhost/",
        "http://localhost:80/",
        "http://x.intern.example/",
        "http://intern.example.org/",
    ] {
        assert_eq!(route(other), Route::Checked, "{other}");
    }
}

#[test]
fn what_cannot_be_allowed_is_explained() {
    for (entry, expected) in [
        ("10.1.2.3/16", "write 10.1.0.0/16 or 10.1.2.3"),
        ("fd00:1::/8", "write fd00::/8 or fd00:1::"),
        ("10.0.0.0/33", "10.1.0.0/16"),
        ("http://localhost/", "10.1.0.0/16"),
        ("localhost:http", "port"),
        ("a b", "localhost:8080"),
        ("", "localhost:8080"),
    ] {
        let error = EgressPolicy::default().allow(entry).unwrap_err();
        assert!(error.contains(expected), "{entry}: {error}");
    }
    for all in ["0.0.0.0/0", "::/0"] {
        assert_eq!(EgressPolicy::default().allow(all), Ok(()), "{all}");
    }
}

proptest! {
    #[test]
    fn every_form_of_an_address_has_the_same_fate(bits in any::<u32>()) {
        let policy = EgressPolicy::default();
        let address = std::net::Ipv4Addr::from_bits(bits);
        let is_public = check(&policy, &format!("http://{address}/")).is_ok();
        let [a, b, c, d] = address.octets();
        for same in [
            format!("{bits}"),
            format!("{bits:#x}"),
            format!("0{bits:o}"),
            format!("{a:#x}.{b:#o}.{}", u32::from(c) * 256 + u32::from(d)).replace("0o", "0"),
            format!("{address}."),
            format!("[::ffff:{address}]"),
            format!("[64:ff9b::{address}]"),
        ] {
            prop_assert_eq!(check(&policy, &format!("http://{same}/")).is_ok(), is_public, "{} {}", address, same);
        }
        for embedded in [format!("[::{address}]"), format!("[2002:{:x}:{:x}::1]", bits >> 16, bits & 0xffff)] {
            let is_refused = check(&policy, &format!("http://{embedded}/")).is_err();
            prop_assert!(is_refused, "{}", embedded);
        }
    }

    #[test]
    fn no_text_makes_the_check_panic(text in "\\PC{0,40}", prefix in "(http://)?[0-9a-fx.:\\[\\]%@]{0,20}") {
        let _ = EgressPolicy::default().allow(&text);
        let _ = EgressPolicy::default().allow(&prefix);
        for url in [text, prefix].iter().filter_map(|url| Url::parse(url).ok()) {
            if let (Ok(()), Some(Host::Ipv4(address))) = (check(&EgressPolicy::default(), url.as_str()), url.host()) {
                prop_assert!(addresses::is_public(address.into()));
            }
        }
    }
}
