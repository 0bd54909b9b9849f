//! `[codec]`: keys change while turns run, workers die, and no turn is lost. Whether any text is in clear is a question of
//! `tests/tests/e2e/production/codec.rs`.

mod deletion;
mod keys;
mod refused;

use everturn_tests::stack::{Process, Stack};

/// The variable with the ring.
pub(crate) const KEYS: &str = "EVERTURN_CODEC_KEYS";

/// The table that turns the codec on.
pub(crate) const TABLE: &str = "[codec]\nkeys_env = \"EVERTURN_CODEC_KEYS\"\n";

pub(crate) fn key(id: &str) -> String {
    everturn_codec::generate_key(id).unwrap()
}

/// Starts workers and gateways with this ring.
async fn start(stack: &Stack, ring: &str) -> (Process, Process) {
    let gateway = stack.gateway_with(&[(KEYS, ring)]).await;
    (stack.worker_with(&[(KEYS, ring)]), gateway)
}

/// The ids of the keys in a history, each as often as there are payloads with it.
fn key_ids(history: &serde_json::Value) -> Vec<String> {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let mut found = Vec::new();
    let mut values = vec![history];
    while let Some(value) = values.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                if let Some(id) = fields.get(everturn_codec::KEY_ID) {
                    let id = STANDARD.decode(id.as_str().unwrap()).unwrap();
                    found.push(String::from_utf8(id).unwrap());
                }
                values.extend(fields.values());
            }
            serde_json::Value::Array(items) => values.extend(items),
            _ => {}
        }
    }
    found
}
