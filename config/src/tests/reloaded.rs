//! The next configuration of a running process.

use super::{PROVIDER, parse};
use crate::{Changes, Config};

fn agent(name: &str, instructions: &str) -> String {
    format!(
        "[agents.{name}]\nprovider = \"main\"\nmodel = \"m\"\ninstructions = \"{instructions}\"\n"
    )
}

fn read(text: &str) -> Config {
    parse(&format!("{PROVIDER}{text}"), &[("KEY", "secret")]).unwrap()
}

#[test]
fn changes_are_told_by_name() {
    let tool = |name: &str| format!("[client_tools.{name}]\ndescription = \"x\"\n");
    let old = read(&(agent("a", "1") + &agent("b", "1") + &tool("t")));
    let new = read(&(agent("b", "2") + &agent("c", "1") + &agent("d", "1") + &tool("u")));
    assert_eq!(
        Changes::between(&old, &new).to_string(),
        "added agents c, d; changed agent b; removed agent a; added tool u; removed tool t"
    );
    let same = read(&(agent("a", "1") + "\n# Later\n" + &agent("b", "1") + &tool("t")));
    assert!(Changes::between(&old, &same).is_empty());
}

#[test]
fn samples_and_owners_and_servers_and_http_tools_count() {
    let base = agent("a", "1");
    let http = "[tools.t]\ndescription = \"x\"\nurl = \"https://a.b/\"\neffect = \"read\"\n";
    for (addition, told) in [
        ("samples = [\"Hello\"]\n", "changed agent a"),
        ("owner = \"Billing\"\n", "changed agent a"),
        (http, "added tool t"),
        (
            "[mcp.files]\ncommand = [\"x\"]\nprocess.unconfined = true\n",
            "added tool files__*",
        ),
    ] {
        let new = read(&format!("{base}{addition}"));
        assert_eq!(Changes::between(&read(&base), &new).to_string(), told);
    }
}

#[test]
fn the_operators_tables_stay_until_a_restart() {
    let old = read(&(agent("a", "1") + "[worker]\nlease = \"3s\"\n[limits]\nopen_streams = 5\n"));
    let new = read(&(agent("a", "2") + "[worker]\nlease = \"4s\"\n"));
    assert_eq!(old.changed_operators(&new), ["limits", "worker"]);
    let next = old.reloaded(new, &old.providers).unwrap();
    assert_eq!(next.agents[0].instructions, "2");
    let offered = &next.gateway.agents[0].definition.instructions;
    assert_eq!(offered, "2");
    assert_eq!(next.worker.lease.as_secs(), 3);
    let streams = next.gateway.tenant.open_streams;
    assert_eq!(streams.map(std::num::NonZero::get), Some(5));
    let spaced = read(&(agent("a", "1") + "[limits]\nopen_streams=5\n[worker]\nlease=\"3s\" #\n"));
    assert!(old.changed_operators(&spaced).is_empty());
}

#[test]
fn what_a_running_process_lacks_is_refused() {
    let old = read(&agent("a", "1"));
    let refused = |text: &str| {
        let refused = old.reloaded(read(text), &old.providers);
        refused.unwrap_err().to_string()
    };
    let other = "[providers.other]\nkind = \"openai\"\nbase_url = \"http://localhost/\"\n";
    let moved = agent("a", "1").replace("main", "other");
    assert!(
        refused(&format!("{moved}{other}")).contains("names the provider `other`"),
        "{other}"
    );
    let fallback = "[agents.a.fallback]\nmodels = [\"other/m\"]\n";
    assert!(refused(&format!("{}{fallback}{other}", agent("a", "1"))).contains("`other`"));
    let mut none = read(&agent("a", "1"));
    none.agents.clear();
    let refused = old.reloaded(none, &old.providers).unwrap_err();
    assert!(refused.to_string().contains("the files have no agent"));
}
