//! `[gateway]` and `[limits]`.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    time::Duration,
};

use super::{assert_errors, parse};

#[test]
fn limits_of_a_tenant_have_defaults_and_can_be_taken_away() {
    let tenant = parse(
        "[limits]\nrequests_per_second = 0\nconcurrent_turns = 7\n",
        &[],
    )
    .unwrap()
    .gateway
    .tenant;
    assert_eq!(
        (tenant.requests.per_second, tenant.requests.burst.get()),
        (None, 2000)
    );
    assert_eq!(
        (tenant.concurrent_turns, tenant.open_streams),
        (NonZeroU32::new(7), NonZeroU32::new(5000))
    );
}

#[test]
fn memory_has_a_limit_for_all_and_for_each_tenant() {
    let memory = |text| {
        let gateway = parse(text, &[]).unwrap().gateway;
        [gateway.memory_bytes, gateway.tenant.memory_bytes]
            .map(|most| most.map_or(0, NonZeroUsize::get))
    };
    let mib = 1024 * 1024;
    assert_eq!(memory(""), [512 * mib, 256 * mib]);
    let written = "[limits]\nmemory_bytes = 0\ntenant_memory_bytes = 16777216\n";
    assert_eq!(memory(written), [0, 16 * mib]);
    assert_errors(&[(
        "[limits]\nmemory_bytes = 1000\n",
        "`memory_bytes` must be from 16777216 to 1099511627776, not 1000",
    )]);
}

#[test]
fn owners_have_limits_where_they_are_written() {
    let owner = |text| parse(text, &[]).unwrap().gateway.owner;
    let none = owner("[limits]\nopen_streams = 3\n");
    assert_eq!(
        (
            none.requests.per_second,
            none.open_streams,
            none.concurrent_turns
        ),
        (None, None, None)
    );
    let some = owner(
        "[limits.owner]\nrequests_per_second = 5\nrequest_burst = 6\nopen_streams = 7\nconcurrent_turns = 8\n",
    );
    assert_eq!(
        (some.requests.per_second, some.requests.burst.get()),
        (NonZeroU32::new(5), 6)
    );
    assert_eq!(
        (some.open_streams, some.concurrent_turns),
        (NonZeroU32::new(7), NonZeroU32::new(8))
    );
    assert_errors(&[(
        "[limits.owner]\nrequest_burst = 0\n",
        "`request_burst` must be from 1 to 1000000, not 0",
    )]);
}

#[test]
fn a_gateway_takes_what_is_written() {
    let text = "[gateway]\nheartbeat = \"150ms\"\nretry_min = \"5s\"\nreader_buffer = 65536\nmax_streams = 2\n\
                linger = \"0s\"\npoll_interval = \"20ms\"\nstall_timeout = \"300ms\"\nmcp_wait = \"2d\"\ndrain = \"0s\"\nshutdown_grace = \"1s\"\n\
                temporal_ui = \"http://localhost:8233/namespaces/default/workflows/{workflow_id}\"\n";
    let config = parse(text, &[]).unwrap();
    let limits = config.gateway;
    let ms = Duration::from_millis;
    assert_eq!(
        (limits.heartbeat, limits.linger, limits.stall_timeout),
        (ms(150), ms(0), ms(300))
    );
    assert_eq!(
        (limits.drain, limits.shutdown_grace, config.poll_interval),
        (ms(0), ms(1000), Some(ms(20)))
    );
    assert_eq!(
        (limits.retry, limits.reader_buffer, limits.max_streams),
        (ms(5000)..=ms(5000), 65536, 2)
    );
    assert_eq!(limits.mcp_wait, Duration::from_hours(48));
    assert!(limits.temporal_ui.is_some());
    assert_eq!(parse("", &[]).unwrap().poll_interval, None);
    assert_eq!(parse("", &[]).unwrap().gateway.temporal_ui, None);
}

#[test]
fn connections_have_limits_of_their_own() {
    let text = "[gateway]\nmax_connections = 9\nmax_connections_per_address = 3\nheader_timeout = \"1s\"\nbody_timeout = \"2s\"\n\
                body_bytes_per_second = 7\nrefused_sign_ins_per_second = 0\ntrusted_proxies = [\"10.0.0.0/8\", \"::1\"]\n";
    let limits = parse(text, &[]).unwrap().gateway.connections;
    assert_eq!((limits.most, limits.most_of_address), (9, Some(3)));
    assert_eq!(
        (
            limits.header_timeout,
            limits.body_timeout,
            limits.body_bytes_per_second
        ),
        (Duration::from_secs(1), Duration::from_secs(2), 7)
    );
    assert_eq!(limits.refused_sign_ins_per_second, None);
    let proxies: Vec<_> = limits
        .trusted_proxies
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(proxies, ["10.0.0.0/8", "::1/128"]);
    assert_eq!(
        parse("", &[]).unwrap().gateway.connections.most_of_address,
        None
    );
}

#[test]
fn a_wrong_setting_of_a_gateway_is_explained() {
    assert_errors(&[
        (
            "[limits]\nmessage_bytes = 999999999\n",
            "2:17: `message_bytes` must be from 1 to",
        ),
        (
            "[limits]\nrequest_burst = 0\n",
            "2:17: `request_burst` must be from 1 to 1000000, not 0",
        ),
        (
            "[limits]\nopen_streams = 2000000\n",
            "2:16: `open_streams` must be from 0 to 1000000, not 2000000",
        ),
        ("[gateway]\ntypo = 1\n", "2:1: unknown field `typo`"),
        (
            "[gateway]\n\nheartbeat = \"1ms\"\n",
            "3:13: `heartbeat` must be from 10ms to 1h, not \"1ms\"",
        ),
        (
            "[gateway]\nretry_min = \"2s\"\nretry_max = \"1s\"\n",
            "3:13: `retry_max` must be from 2s to 1h",
        ),
        (
            "[gateway]\nmax_header_bytes = 1000\n",
            "2:20: `max_header_bytes` must be from 8192 to 1048576, not 1000",
        ),
        (
            "[gateway]\ntrusted_proxies = [\"10.0.0.0/8\", \"proxy\"]\n",
            "2:34: `trusted_proxies` has \"proxy\", but a network is written like \"10.0.0.0/8\", or as an address",
        ),
        (
            "[gateway]\nmax_streams = 0\n",
            "2:15: `max_streams` must be from 1 to 1000000, not 0",
        ),
        (
            "[gateway]\ntemporal_ui = \"http://localhost:8233\"\n",
            "2:15: `temporal_ui` cannot be used: the address of a workflow is an http or https URL without a user, with \
             `{workflow_id}` where",
        ),
    ]);
}
