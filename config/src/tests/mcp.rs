//! `[mcp.NAME]`: MCP servers.

use std::{collections::BTreeMap, time::Duration};

use everturn_tools::{
    Effect,
    mcp::{
        ClientAuth, OAuthGrant, OAuthOptions, PerTenant, SecretFile, SecretSource, ServerLocation,
        ServerOptions, TokenSource,
    },
};

use super::PROVIDER;
use crate::{Config, ConfigError};

fn parse(text: &str) -> Result<Config, ConfigError> {
    let environment = [("KEY", "k"), ("TOKEN", "secret"), ("lower_case", "secret")];
    super::parse(text, &environment)
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn a_server_takes_what_is_written() {
    let text = "[mcp.files]\ncommand = [\"npx\", \"server\"]\nprocess.unconfined = true\ncwd = \"/srv\"\nenv_from = [\"TOKEN\", \"lower_case\"]\n\
                effects = {\"*\" = \"once\", list = \"read\"}\ntitles = {list = \"List {path}\"}\ntools = [\"list\"]\nidle_timeout = \"20s\"\nmax_tools = 3\n\
                [mcp.web]\nurl = \"https://example.com/mcp\"\nheaders_env = {authorization = \"TOKEN\"}\nprobes = {pay = \"find\"}\n";
    let servers = parse(text).unwrap().mcp;
    let [files, web] = &servers[..] else {
        panic!("{servers:?}")
    };
    assert_eq!(
        (
            files.name.as_str(),
            files.max_tools,
            files.max_concurrent_calls
        ),
        ("files", 3, 16)
    );
    assert_eq!(
        files.effects,
        BTreeMap::from([("*".into(), Effect::Once), ("list".into(), Effect::Read)])
    );
    assert_eq!(web.probes, BTreeMap::from([("pay".into(), "find".into())]));
    assert_eq!(files.titles["list"], "List {path}");
    assert_eq!(
        (files.idle_timeout, web.idle_timeout),
        (Some(Duration::from_secs(20)), None)
    );
    assert!(
        matches!(&files.location, ServerLocation::Command { environment, .. } if environment.len() == 2)
    );
    assert!(
        matches!(&web.location, ServerLocation::Url { headers, .. } if headers[0].1 == "secret")
    );
}

#[test]
fn what_is_wrong_is_said() {
    for (table, expected) in [
        (
            "[mcp.a__b]\ncommand = [\"x\"]\nprocess.unconfined = true",
            "single `_`",
        ),
        (
            "[mcp.skill]\ncommand = [\"x\"]\nprocess.unconfined = true",
            "cannot be called `skill`",
        ),
        ("[mcp.a]", "either a `command` or a `url`"),
        (
            "[mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\nurl = \"http://x\"",
            "either a `command` or a `url`",
        ),
        ("[mcp.a]\ncommand = []", "a program and its arguments"),
        ("[mcp.a]\nurl = \"ftp://x\"", "http or https"),
        (
            "[mcp.a]\nurl = \"http://x\"\ncwd = \"/\"",
            "belongs to a server with a `command`",
        ),
        (
            "[mcp.a]\nurl = \"http://x\"\nheaders_env = {authorization = \"Bearer abc\"}",
            "not values",
        ),
        (
            "[mcp.a]\nurl = \"http://x\"\nenv = {A = \"b\"}",
            "`env` belongs to a server with a `command`",
        ),
        (
            "[mcp]\nimport = \"/nowhere/mcp.json\"",
            "mcp.json cannot be read",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\nenv_from = [\"A=b\"]",
            "not values",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\neffects = {t = \"write\"}",
            "`t` has \"write\", but the choices are: read, idempotent, once",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\ntitles = {t = \"Write {\"}",
            "`t` cannot be used: a `{` has no `}`",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\nmax_tools = 0",
            "`max_tools` must be from 1",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\nconnect_timeout = \"1h\"",
            "`connect_timeout` must be from 1s",
        ),
        (
            "[mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\nunknown = 1",
            "unknown field",
        ),
    ] {
        let error = error(table);
        assert!(error.contains(expected), "{table}: {error}");
    }
}

/// A worker starts without the server, and the other servers stay.
#[test]
fn a_server_that_lacks_a_variable_stops_no_worker() {
    let lacking = [
        "url = \"http://x\"\nheaders_env = {authorization = \"MISSING\"}",
        "command = [\"x\"]\nprocess.unconfined = true\nenv_from = [\"MISSING\"]",
        "url = \"https://h/mcp\"\n[mcp.a.oauth]\nissuer = \"https://login\"\nclient_id = \"c\"\nclient_secret_env = \"MISSING\"",
    ];
    for table in lacking {
        let text = format!("[mcp.a]\n{table}\n[mcp.b]\nurl = \"http://y\"\n");
        let servers = parse(&text).unwrap().mcp;
        let ServerLocation::Unusable { reason } = &servers[0].location else {
            panic!("{servers:?}")
        };
        assert!(reason.contains("MISSING named by"), "{reason}");
        assert!(matches!(&servers[1].location, ServerLocation::Url { .. }));
    }
}

/// Returns the servers of a file of a client of MCP, beside tables of the configuration.
fn imported(json: &str, tables: &str) -> Result<Vec<ServerOptions>, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mcp.json");
    std::fs::write(&file, json).unwrap();
    let text = format!("[mcp]\nimport = \"{}\"\n{tables}", file.display());
    let config = parse(&text).map_err(|error| error.to_string())?;
    Ok(config.mcp)
}

#[test]
fn a_pasted_file_of_servers_works_as_it_is() {
    let json = r#"{"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "server-filesystem", "${HOME:-/home/me}"], "env": {"LEVEL": "debug", "TOKEN": "${TOKEN}", "N": 3},
                  "type": "stdio", "autoApprove": []},
        "My Web Server": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${env:KEY}"}},
        "lacks": {"command": "uvx", "args": ["x"], "env": {"A": "${NOT_SET}"}},
        "asks": {"command": "uvx", "env": {"A": "${input:token}"}},
        "off": {"command": "x", "disabled": true}}}"#;
    let servers = imported(
        json,
        "unconfined = [\"files\", \"lacks\", \"asks\"]\n[mcp.files]\neffects = {read = \"read\"}\n",
    )
    .unwrap();
    let by_name = |name: &str| servers.iter().find(|server| server.name == name).unwrap();
    let files = by_name("files");
    assert_eq!(files.effects["read"], Effect::Read);
    let ServerLocation::Command {
        command,
        environment,
        ..
    } = &files.location
    else {
        panic!("{files:?}")
    };
    assert_eq!(command.join(" "), "npx -y server-filesystem /home/me");
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        environment[..],
        [
            pair("LEVEL", "debug"),
            pair("N", "3"),
            pair("TOKEN", "secret")
        ]
    );
    let web = by_name("My-Web-Server");
    assert!(
        matches!(&web.location, ServerLocation::Url { headers, .. } if headers[..] == [pair("Authorization", "Bearer k")])
    );
    for (name, expected) in [("lacks", "NOT_SET"), ("asks", "a person at a keyboard")] {
        let server = by_name(name);
        assert!(
            matches!(&server.location, ServerLocation::Unusable { reason } if reason.contains(expected)),
            "{server:?}"
        );
    }
    assert_eq!(servers.len(), 4);
}

#[test]
fn an_imported_file_that_is_wrong_is_a_clear_error() {
    for (json, tables, expected) in [
        ("{", "", "is no JSON"),
        ("[]", "", "no object `mcpServers`"),
        (
            r#"{"mcpServers": {"a": 1}}"#,
            "",
            "server `a`: a server is an object",
        ),
        (
            r#"{"mcpServers": {"a": {"command": {}}}}"#,
            "",
            "server `a`: `command`",
        ),
        (
            r#"{"mcpServers": {"a": {}}}"#,
            "",
            "either a `command` or a `url`",
        ),
        (
            r#"{"mcpServers": {"a": {"type": "pigeon", "url": "http://x"}}}"#,
            "",
            "\"pigeon\" is unknown",
        ),
        (
            r#"{"mcpServers": {"a b": {"url": "http://x"}, "a-b": {"url": "http://x"}}}"#,
            "",
            "two servers",
        ),
        (
            r#"{"mcpServers": {}}"#,
            "unconfined = [\"b\"]\n",
            "no server has this name",
        ),
        (
            r#"{"mcpServers": {"日本": {"url": "http://x"}}}"#,
            "",
            "1 to 30 letters",
        ),
        (
            r#"{"mcpServers": {"a": {"url": "http://x"}}}"#,
            "[mcp.a]\nurl = \"http://y\"\n",
            "also has a server `a`",
        ),
    ] {
        let error = imported(json, tables).unwrap_err();
        assert!(error.contains(expected), "{json}: {error}");
    }
}

#[test]
fn agents_name_tools_of_servers_that_are_configured() {
    let agent = |tool: &str| {
        format!(
            "[mcp.files]\ncommand = [\"x\"]\nprocess.unconfined = true\n{PROVIDER}\
             [agents.default]\nprovider = \"main\"\nmodel = \"m\"\ntools = [\"calculate\", \"{tool}\"]\n"
        )
    };
    for good in ["files__read", "files__*"] {
        assert_eq!(parse(&agent(good)).unwrap().agents[0].tools[1].name, good);
    }
    assert!(error(&agent("web__*")).contains("there is no MCP server `web`; there are: files"));
    assert!(error(&agent("files__re*")).contains("`files__<tool>`"));
    assert!(error(&agent("files__")).contains("`files__<tool>`"));
}

#[test]
fn a_server_may_have_a_connection_for_each_tenant() {
    let text = "[mcp.notes]\ncommand = [\"notes\"]\nprocess.unconfined = true\nper = \"tenant\"\nmax_connections = 3\nkeep_idle = \"1m\"\n\
                tenants = [\"acme\"]\nagents = [\"clerk\"]\nenv_file = {TOKEN = \"/run/secrets/{tenant}/token\"}\n\
                [mcp.web]\nurl = \"https://example.com/mcp\"\nheaders_file = {authorization = \"token\"}\n\
                tell_caller = false\n";
    let servers = parse(text).unwrap().mcp;
    let [notes, web] = &servers[..] else {
        panic!("{servers:?}")
    };
    let limits = PerTenant {
        max_connections: 3,
        idle: Duration::from_secs(60),
    };
    assert_eq!((notes.per_tenant, web.per_tenant), (Some(limits), None));
    assert!(notes.tell_caller && !web.tell_caller);
    assert_eq!(
        (&notes.tenants[..], &notes.agents[..]),
        (&["acme".into()][..], &["clerk".into()][..])
    );
    let ServerLocation::Command {
        environment_files, ..
    } = &notes.location
    else {
        panic!("{servers:?}")
    };
    assert_eq!(
        environment_files[0].1,
        SecretFile::new("/run/secrets/{tenant}/token")
    );
    for (more, expected) in [
        (
            "keep_idle = \"1m\"",
            "`keep_idle` belongs to a server with `per = \"tenant\"`",
        ),
        ("max_connections = 2", "`max_connections` belongs to"),
        (
            "env_file = {A = \"/{tenant}\"}",
            "`{tenant}` in `env_file` needs",
        ),
        (
            "headers_file = {a = \"/a\"}",
            "`headers_file` belongs to a server with a `url`",
        ),
        ("per = \"user\"", "unknown variant `user`"),
        ("tenants = []", "`tenants` names 1 to 1000"),
    ] {
        let message = error(&format!(
            "[mcp.notes]\ncommand = [\"notes\"]\nprocess.unconfined = true\n{more}\n"
        ));
        assert!(message.contains(expected), "{more}: {message}");
    }
}

/// A server with this table of OAuth, and more of its own.
fn with_oauth(server: &str, oauth: &str) -> String {
    format!("[mcp.web]\nurl = \"https://h/mcp\"\n{server}\n[mcp.web.oauth]\n{oauth}\n")
}

fn oauth(text: &str) -> OAuthOptions {
    let servers = parse(text).unwrap().mcp;
    match &servers[0].location {
        ServerLocation::Url { oauth, .. } => *oauth.clone().unwrap(),
        _ => panic!("{servers:?}"),
    }
}

#[test]
fn tokens_are_asked_for_as_is_written() {
    let client = "client_id = \"c\"\nclient_secret_env = \"TOKEN\"";
    let text = with_oauth(
        "",
        &format!("issuer = \"https://login/acme\"\n{client}\nscopes = [\"a:b\"]"),
    );
    let read = oauth(&text);
    assert_eq!(read.server.as_str(), "https://h/mcp");
    assert_eq!(
        read.issuer,
        TokenSource::Issuer("https://login/acme".into())
    );
    assert!(matches!(&read.client_secret, Some(SecretSource::Value(secret)) if secret == "secret"));
    assert_eq!(read.scopes, Some(vec!["a:b".to_owned()]));
    assert!(!format!("{read:?}").contains("\"secret\""), "{read:?}");
    let post = "token_url = \"https://login/t\"\nclient_auth = \"client_secret_post\"\nclient_id_env = \"KEY\"\n\
                client_secret_file = \"/run/{tenant}/secret\"";
    let read = oauth(&with_oauth("per = \"tenant\"", post));
    let endpoint = TokenSource::Endpoint {
        url: "https://login/t".parse().unwrap(),
        method: ClientAuth::Post,
        authorization_url: None,
    };
    assert_eq!((read.issuer, read.scopes), (endpoint, None));
    assert!(matches!(&read.client_secret, Some(SecretSource::File(file)) if file.is_per_tenant()));
}

const CODEC: &str = "[codec]\nkeys_file = \"/run/keys\"\n";

#[test]
fn people_consent_where_the_grant_says_so() {
    let table = "grant = \"authorization_code\"\nissuer = \"https://login\"\nclient_id_file = \"/run/{tenant}/id\"";
    let text = with_oauth("max_connections = 3", table) + CODEC;
    let server = parse(&text).unwrap().mcp.remove(0);
    assert!(server.needs_consent());
    assert_eq!(server.per_tenant.unwrap().max_connections, 3);
    let read = oauth(&text);
    assert_eq!(read.grant, OAuthGrant::AuthorizationCode);
    assert_eq!(read.client_secret, None, "a public client");
    let installation = lines("ISSUER; ID; SECRET");
    let read = oauth(&with_oauth("", &installation));
    assert_eq!(read.grant, OAuthGrant::ClientCredentials);
    let urls = "GRANT; token_url = 'https://login/t'; authorization_url = 'https://login/a'; ID";
    let read = oauth(&(with_oauth("", &lines(urls)) + CODEC));
    assert!(
        matches!(read.issuer, TokenSource::Endpoint { authorization_url: Some(url), .. } if url.path() == "/a")
    );
    for (server, table, codec, expected) in [
        (
            "",
            "GRANT; ISSUER; ID",
            "",
            "needs `keys_env` or `keys_file` in [codec]",
        ),
        (
            "per = \"tenant\"",
            "GRANT; ISSUER; ID",
            CODEC,
            "each person has a connection",
        ),
        (
            "",
            "GRANT; token_url = 'https://login/t'; ID",
            CODEC,
            "needs an `authorization_url`",
        ),
        (
            "",
            "GRANT; ISSUER; authorization_url = 'https://login/a'; ID",
            CODEC,
            "belongs to a `token_url`",
        ),
        (
            "",
            "ISSUER; authorization_url = 'https://login/a'; ID; SECRET",
            "",
            "belongs to the grant",
        ),
        ("", "grant = 'password'; ISSUER; ID", CODEC, "`grant`"),
    ] {
        let message = error(&(with_oauth(server, &lines(table)) + codec));
        assert!(message.contains(expected), "{table}: {message}");
    }
}

/// The lines of a table: those of these names, and others as they are.
fn lines(text: &str) -> String {
    let line = |part: &str| match part {
        "ISSUER" => "issuer = \"https://login\"".to_owned(),
        "GRANT" => "grant = \"authorization_code\"".to_owned(),
        "ID" => "client_id = \"c\"".to_owned(),
        "SECRET" => "client_secret_env = \"TOKEN\"".to_owned(),
        other => other.replace('\'', "\""),
    };
    text.split("; ").map(|part| line(part) + "\n").collect()
}

#[test]
fn what_is_wrong_with_oauth_is_said() {
    let issuer = "either an `issuer`";
    let id = "one of `client_id`";
    for (table, expected) in [
        ("ID; SECRET", issuer),
        ("ISSUER; ID; SECRET; token_url = 'https://login/t'", issuer),
        ("issuer = 'http://login'; ID; SECRET", "`issuer` must be an"),
        (
            "token_url = 'ftp://h'; ID; SECRET",
            "`token_url` must be an",
        ),
        ("issuer = 'https://login?a'; ID; SECRET", "has no query"),
        ("ISSUER; SECRET", id),
        ("ISSUER; ID; client_id_env = 'KEY'; SECRET", id),
        ("ISSUER; ID", "either a `client_secret_env` or"),
        ("ISSUER; ID; client_secret_env = 'hunter2'", "not values"),
        (
            "ISSUER; ID; client_secret_file = '/{tenant}'",
            "`{tenant}` in `client_secret_file` needs",
        ),
        ("ISSUER; ID; SECRET; scopes = ['a b']", "a scope is a word"),
        (
            "ISSUER; ID; SECRET; client_auth = 'client_secret_post'",
            "belongs to a `token_url`",
        ),
        ("ISSUER; ID; SECRET; secret = 'x'", "unknown field"),
    ] {
        let message = error(&with_oauth("", &lines(table)));
        assert!(message.contains(expected), "{table}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
    let whole = lines("ISSUER; ID; SECRET");
    let two = with_oauth("headers_env = {Authorization = \"TOKEN\"}", &whole);
    assert!(error(&two).contains("and not both"));
    let plain = with_oauth("", &whole).replace("https://h/mcp", "http://h/mcp");
    assert!(
        error(&plain)
            .contains("`url` must be an https URL without a user and a fragment, because secrets")
    );
    let program =
        format!("[mcp.a]\ncommand = [\"x\"]\nprocess.unconfined = true\n[mcp.a.oauth]\n{whole}");
    assert!(error(&program).contains("`oauth` belongs to a server with a `url`"));
}
